"""What every answer has: the time that was asked about, the time that there was data of, sentences and rows."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.clock import iso, stamp

MOST = 50
"""So many rows of one kind are told; the rest is counted."""

_SEAM = 120.0
"""Seconds: a minute may lie so far from the next and there is no gap between them; the present minute is not whole."""

_MOST_GAPS = 20


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when there was data.

    Attributes:
        asked_from, asked_to: what was asked about, ISO 8601 UTC.
        first, last: the first minute and the end of the last one with data; None without any.
        minutes: with data.
        gaps: (from, to) without data between the two, the latest `_MOST_GAPS` of them.
        gap_minutes: of all gaps together.
    """

    asked_from: str
    asked_to: str
    first: str | None = None
    last: str | None = None
    minutes: int = 0
    gaps: tuple[tuple[str, str], ...] = ()
    gap_minutes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        question: as on the command line.
        asked: its options.
        told: sentences, the first one first.
        rows: what they are made of, at most `MOST`.
        because: why it cannot be told; None where it can.
    """

    question: str
    asked: Mapping[str, Any]
    data: Span
    told: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    because: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def hours_known(rows: DataFrame, time: str = "hour") -> DataFrame:
    """One row an hour that a table of hours has: `hour`, `minutes`, `first_minute`, `last_minute`."""
    return rows.groupBy(F.col(time).alias("hour")).agg(
        F.max("minutes").alias("minutes"),
        F.min("first_minute").alias("first_minute"),
        F.max("last_minute").alias("last_minute"),
    )


def span(start: float, end: float, hours: Iterable[Mapping[str, Any]]) -> Span:
    """What the rows of `hours_known` tell of the time from `start` to `end`, seconds since 1970."""
    known = sorted((stamp(it["first_minute"]), stamp(it["last_minute"]) + 60, int(it["minutes"])) for it in hours)
    if not known:
        return Span(iso(start), iso(end))
    gaps: list[tuple[float, float]] = []
    lacking, reach = 0.0, known[0][0]
    for first, last, minutes in known:
        if first - reach > _SEAM:
            gaps.append((reach, first))
        lacking += max(0.0, first - reach) + max(0.0, last - first - minutes * 60)
        reach = max(reach, last)
    return Span(
        iso(start),
        iso(end),
        iso(known[0][0]),
        iso(reach),
        sum(minutes for _, _, minutes in known),
        tuple((iso(a), iso(b)) for a, b in gaps[-_MOST_GAPS:]),
        round(lacking / 60),
    )


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small frame; call it on what was aggregated."""
    found: list[dict[str, Any]] = rows.toArrow().to_pylist()
    return found

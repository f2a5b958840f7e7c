"""The common form of answers: options, data coverage, sentences and rows."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.clock import iso, stamp
from probes.catalogue import NOT_ACKED_BY_DESIGN

# Rows per answer; the rest is only counted.
MAX_ROWS = 50

# Larger distances between minutes are gaps; the present minute is incomplete.
_MAX_STEP_SECONDS = 120.0

_MAX_GAPS = 20


@dataclass(frozen=True, slots=True)
class DataCoverage:
    """The time with data.

    Attributes:
        requested_from, requested_to: the requested time range, ISO 8601 UTC.
        first, last: start of the first and end of the last minute with data; None without any.
        minutes: minutes with data.
        gaps: (from, to) without data in between, the latest `_MAX_GAPS` of them.
        gap_minutes: total of all gaps.
    """

    requested_from: str
    requested_to: str
    first: str | None = None
    last: str | None = None
    minutes: int = 0
    gaps: tuple[tuple[str, str], ...] = ()
    gap_minutes: int = 0


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """One answer.

    Attributes:
        question: as on the command line.
        options: its options.
        sentences: the answer as text.
        rows: the answer as data, at most `MAX_ROWS`.
        because: why there is no answer; None if there is one.
    """

    question: str
    options: Mapping[str, Any]
    data: DataCoverage
    sentences: tuple[str, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    because: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The JSON document, with its own names for `options` (asked) and `sentences` (told)."""
        data = asdict(self.data)
        requested = {"asked_from": data.pop("requested_from"), "asked_to": data.pop("requested_to")}
        return {
            "question": self.question,
            "asked": dict(self.options),
            "data": {**requested, **data},
            "told": list(self.sentences),
            "rows": list(self.rows),
            "because": self.because,
            "more": dict(self.more),
        }


def expects_acks() -> Column:
    """A filter for rows of probes whose messages a healthy broker acks."""
    return ~F.col("probe").isin(*NOT_ACKED_BY_DESIGN)


def hours_known(rows: DataFrame, time: str = "hour") -> DataFrame:
    """One row per hour of a table of hours: `hour`, `minutes`, `first_minute`, `last_minute`."""
    return rows.groupBy(F.col(time).alias("hour")).agg(
        F.max("minutes").alias("minutes"),
        F.min("first_minute").alias("first_minute"),
        F.max("last_minute").alias("last_minute"),
    )


def coverage(start: float, end: float, hours: Iterable[Mapping[str, Any]]) -> DataCoverage:
    """The data coverage from `start` to `end`, seconds since 1970, by the rows of `hours_known`."""
    known = sorted((stamp(it["first_minute"]), stamp(it["last_minute"]) + 60, int(it["minutes"])) for it in hours)
    if not known:
        return DataCoverage(iso(start), iso(end))
    gaps: list[tuple[float, float]] = []
    missing, reach = 0.0, known[0][0]
    for first, last, minutes in known:
        if first - reach > _MAX_STEP_SECONDS:
            gaps.append((reach, first))
        missing += max(0.0, first - reach) + max(0.0, last - first - minutes * 60)
        reach = max(reach, last)
    return DataCoverage(
        iso(start),
        iso(end),
        iso(known[0][0]),
        iso(reach),
        sum(minutes for _, _, minutes in known),
        tuple((iso(a), iso(b)) for a, b in gaps[-_MAX_GAPS:]),
        round(missing / 60),
    )


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    """The rows of a small, aggregated DataFrame."""
    found: list[dict[str, Any]] = rows.toArrow().to_pylist()
    return found

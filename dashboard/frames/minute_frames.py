"""Rollup rows shaped for charts: merged over nodes, put on an even time axis, with gaps left as gaps. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC as PLAIN_UTC
from datetime import datetime, timedelta

import pandas as pd

from ackscope.latency import BOUNDS_VERSION, COLUMNS, quantile
from ackscope.tables import OUTCOMES
from dashboard.format.timezones import UTC, Zone


@dataclass(frozen=True, slots=True)
class Range:
    """How far back the charts go.

    Attributes:
        minutes: all of it.
        step: minutes that one point stands for.
    """

    label: str
    minutes: int
    step: int


RANGES = {
    "15m": Range("15 minutes", 15, 1),
    "1h": Range("1 hour", 60, 1),
    "6h": Range("6 hours", 360, 2),
    "24h": Range("24 hours", 1440, 10),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """An even time axis of whole steps; each point carries the start of its step.

    A chart shows the wall time of its points: their offset from UTC is that of `start`, all along the axis.

    Attributes:
        end: exclusive; the present minute is left out, it is not complete.
        step: minutes.
        moved: clocks of the zone were moved between `start` and `end`: a part of them showed another time.
    """

    start: datetime
    end: datetime
    step: int
    moved: bool = False

    @classmethod
    def until(cls, now: datetime, span: Range, zone: Zone = UTC) -> "Axis":
        """The axis that ends with the last complete minute before `now`."""
        end = now.replace(second=0, microsecond=0)
        return cls.between(end - timedelta(minutes=span.minutes), end, span.step, zone)

    @classmethod
    def between(cls, start: datetime, end: datetime, step: int, zone: Zone = UTC) -> "Axis":
        """The axis from a moment to another, as the zone's clocks show them at its end."""
        steady = zone.steady(end)
        moved = zone.at(start).utcoffset() != zone.at(end).utcoffset()
        return cls(start.astimezone(steady), end.astimezone(steady), step, moved)

    @property
    def utc(self) -> tuple[datetime, datetime]:
        """`start` and `end` in UTC, as history is asked."""
        return self.start.astimezone(PLAIN_UTC), self.end.astimezone(PLAIN_UTC)

    @property
    def zone(self) -> str:
        """What the zone is called in which it is drawn."""
        return self.start.tzname() or ""

    @property
    def points(self) -> pd.DatetimeIndex:
        """The start of every step."""
        return pd.date_range(self.start, self.end, freq=f"{self.step}min", inclusive="left", name="at", unit="us")

    def place(self, minutes: pd.Series) -> pd.Series:
        """The step that each minute falls into."""
        width = pd.Timedelta(minutes=self.step)
        start = pd.Timestamp(self.start)
        placed: pd.Series = start + (minutes - start) // width * width
        return placed.astype(self.points.dtype).rename("at")


def latency(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """Confirm latency of one stream: `p50`, `p99`, `max` in seconds and `count`, by step.

    Buckets are added over nodes, delivery modes and minutes first, and only then asked for quantiles:
    percentiles do not average. Rows with other bucket edges are left out.
    """
    mine = rows[
        (rows["probe"] == "confirm")
        & (rows["measure"] == "confirm")
        & (rows["stream"] == stream)
        & (rows["bounds"] == BOUNDS_VERSION)
    ]
    groups = mine.groupby(axis.place(mine["minute"]))
    merged = groups[["count", *COLUMNS]].sum().join(groups["max"].max())
    lines = [
        (
            quantile(tuple(int(row[name]) for name in COLUMNS), float(row["max"]), 0.5),
            quantile(tuple(int(row[name]) for name in COLUMNS), float(row["max"]), 0.99),
        )
        for row in merged.to_dict("records")
    ]
    found = pd.DataFrame(lines, columns=["p50", "p99"], index=merged.index, dtype=float)
    return found.join(merged[["max", "count"]]).reindex(axis.points)


def outcomes(rows: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """What became of the probes' messages: `messages` and one column an outcome, by step.

    Those of the nack probe are left out: they are refused by design, and would hide the ones that are not.
    """
    return _sums(rows[rows["probe"] != "nack"], axis, ["messages", *OUTCOMES])


def batches(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """How many messages one burst of acks settles: `mean` and `max`, by step."""
    mine = rows[rows["stream"] == stream]
    groups = mine.groupby(axis.place(mine["minute"]))
    sums = groups[["messages", "bursts"]].sum()
    mean = (sums["messages"] / sums["bursts"].where(sums["bursts"] > 0)).rename("mean")
    return pd.DataFrame(mean).join(groups["messages_max"].max().rename("max")).reindex(axis.points)


def depth(rows: pd.DataFrame, axis: Axis) -> dict[tuple[str, str], pd.DataFrame]:
    """Most messages `ready` and `unacked` by step, of each queue (vhost, name), the deepest first."""
    shaped: dict[tuple[str, str], pd.DataFrame] = {}
    for (vhost, queue), mine in rows.groupby(["vhost", "queue"]):
        most = mine.groupby(axis.place(mine["minute"]))[["messages_ready_max", "messages_unacked_max"]].max()
        most.columns = pd.Index(["ready", "unacked"])
        shaped[str(vhost), str(queue)] = most.astype(float).reindex(axis.points)
    return dict(sorted(shaped.items(), key=lambda item: -float(item[1].sum(axis=1).max())))


def redelivered(rows: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Messages `redelivered` by all queues together, by step."""
    return _sums(rows, axis, ["redelivered"])


def streams(rows: pd.DataFrame) -> list[str]:
    """The probe streams that stand for a queue type as users use it, the known types first; controls are left out."""
    known = ("classic", "quorum", "stream")
    found = set(rows.loc[rows["stream"] == rows["queue_type"], "stream"].dropna())
    return [name for name in known if name in found] + sorted(found - set(known))


def gaps(shaped: Iterable[pd.DataFrame], axis: Axis) -> list[tuple[pd.Timestamp, pd.Timestamp]]:
    """Spans without any row, as start and end: nobody looked, which is not the same as nothing happened."""
    told = pd.Series(data=False, index=axis.points)
    for frame in shaped:
        told |= frame.notna().any(axis=1)
    width = pd.Timedelta(minutes=axis.step)
    spans: list[tuple[pd.Timestamp, pd.Timestamp]] = []
    for at in told.index[~told]:
        if spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], at + width)
        else:
            spans.append((at, at + width))
    return spans


def _sums(rows: pd.DataFrame, axis: Axis, columns: list[str]) -> pd.DataFrame:
    summed = rows.groupby(axis.place(rows["minute"]))[columns].sum(min_count=1)
    return summed.astype(float).reindex(axis.points)

"""Minute rollups shaped for charts: merged over nodes, on an even time axis, with gaps as gaps. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC as PLAIN_UTC
from datetime import datetime, timedelta

import pandas as pd

from ackscope.format import whole_minutes
from ackscope.latency import BOUNDS_VERSION, COLUMNS, quantile
from ackscope.tables import OUTCOMES
from dashboard.format import readable
from dashboard.format.timezones import UTC, Zone
from probes.catalogue import NOT_ACKED_BY_DESIGN


@dataclass(frozen=True, slots=True)
class Range:
    """A time range: live, which ends now, or fixed.

    Attributes:
        minutes: length of the range.
        step: minutes per point of a chart.
        start: start of a fixed range, in UTC and whole minutes; None: the range is live.
    """

    label: str
    minutes: int
    step: int
    start: datetime | None = None

    @classmethod
    def between(cls, start: datetime, end: datetime) -> "Range":
        """A fixed range from `start` to `end`, both in whole minutes."""
        minutes = round((end - start).total_seconds() / 60)
        return cls(whole_minutes(minutes), minutes, step_minutes(end - start), start)

    @property
    def live(self) -> bool:
        """Whether the range ends now."""
        return self.start is None

    def at(self, now: datetime) -> tuple[datetime, datetime]:
        """Start and end, in UTC and whole minutes; a live range ends with the last complete minute before `now`."""
        length = timedelta(minutes=self.minutes)
        if self.start is not None:
            return self.start, self.start + length
        end = now.astimezone(PLAIN_UTC).replace(second=0, microsecond=0)
        return end - length, end

    def words(self, zone: Zone = UTC) -> str:
        """The range in a sentence: `in the last 1 hour`, `from 2026-03-01 12:04 to 12:31 UTC`."""
        if self.start is None:
            return f"in the last {self.label}"
        return f"from {readable.between(*self.at(self.start), zone)}"


RANGES = {
    "15m": Range("15 minutes", 15, 1),
    "1h": Range("1 hour", 60, 1),
    "6h": Range("6 hours", 360, 2),
    "24h": Range("24 hours", 1440, 10),
    "7d": Range("7 days", 7 * 1440, 60),
}
"""The live ranges."""

MIN_RANGE, MAX_RANGE = timedelta(minutes=5), timedelta(days=7)
"""Limits of a fixed range: a shorter one has too few points for a line, a longer one too many minutes to read."""


def step_minutes(length: timedelta) -> int:
    """Minutes per point on an axis of this length: at most 180 points, and whole hours for more than a day."""
    if length > timedelta(days=1):
        return 60
    return next(step for step in (1, 2, 5, 10) if length <= timedelta(minutes=180) * step)


@dataclass(frozen=True, slots=True)
class Axis:
    """An even time axis of whole steps; the time of a point is the start of its step.

    A chart shows local times: all points have the UTC offset of `start`.

    Attributes:
        end: exclusive; the current minute is excluded because it is not complete.
        step: minutes.
        clock_change: the UTC offset of the zone changes between `start` and `end`.
    """

    start: datetime
    end: datetime
    step: int
    clock_change: bool = False

    @classmethod
    def until(cls, now: datetime, span: Range, zone: Zone = UTC) -> "Axis":
        """The axis of a range at `now`, in whole steps; the last step of a fixed range may end after the range."""
        start, _ = span.at(now)
        steps = -(-span.minutes // span.step)
        return cls.between(start, start + timedelta(minutes=steps * span.step), span.step, zone)

    @classmethod
    def between(cls, start: datetime, end: datetime, step: int, zone: Zone = UTC) -> "Axis":
        """An axis from `start` to `end`, with the zone's UTC offset at `end`."""
        offset = zone.fixed_offset(end)
        clock_change = zone.local(start).utcoffset() != zone.local(end).utcoffset()
        return cls(start.astimezone(offset), end.astimezone(offset), step, clock_change)

    @property
    def utc(self) -> tuple[datetime, datetime]:
        """`start` and `end` in UTC, to query the history."""
        return self.start.astimezone(PLAIN_UTC), self.end.astimezone(PLAIN_UTC)

    @property
    def zone(self) -> str:
        """Name of the time zone of the axis."""
        return self.start.tzname() or ""

    @property
    def points(self) -> pd.DatetimeIndex:
        """The start of every step."""
        return pd.date_range(self.start, self.end, freq=f"{self.step}min", inclusive="left", name="at", unit="us")

    def step_of(self, minutes: pd.Series) -> pd.Series:
        """The start of the step that each minute falls into."""
        width = pd.Timedelta(minutes=self.step)
        start = pd.Timestamp(self.start)
        steps: pd.Series = start + (minutes - start) // width * width
        return steps.astype(self.points.dtype).rename("at")


def latency(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """Confirm latency of one stream: `p50`, `p99`, `max` in seconds and `count`, by step.

    Histogram buckets are summed over nodes, delivery modes and minutes before the quantiles are computed: percentiles
    cannot be averaged. Rows with other bucket edges are excluded.
    """
    mine = rows[
        (rows["probe"] == "confirm")
        & (rows["measure"] == "confirm")
        & (rows["stream"] == stream)
        & (rows["bounds"] == BOUNDS_VERSION)
    ]
    groups = mine.groupby(axis.step_of(mine["minute"]))
    merged = groups[["count", *COLUMNS]].sum().join(groups["max"].max())
    quantiles = [
        (
            quantile(tuple(int(row[name]) for name in COLUMNS), float(row["max"]), 0.5),
            quantile(tuple(int(row[name]) for name in COLUMNS), float(row["max"]), 0.99),
        )
        for row in merged.to_dict("records")
    ]
    shaped = pd.DataFrame(quantiles, columns=["p50", "p99"], index=merged.index, dtype=float)
    return shaped.join(merged[["max", "count"]]).reindex(axis.points)


def outcomes(rows: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Outcomes of probe messages: `messages` and one column per outcome, by step.

    Probes whose messages are refused by design are excluded, or they would hide real failures.
    """
    return _sums(rows[~rows["probe"].isin(NOT_ACKED_BY_DESIGN)], axis, ["messages", *OUTCOMES])


def batches(rows: pd.DataFrame, axis: Axis, stream: str) -> pd.DataFrame:
    """Messages confirmed by one burst of acks: `mean` and `max`, by step."""
    mine = rows[rows["stream"] == stream]
    groups = mine.groupby(axis.step_of(mine["minute"]))
    sums = groups[["messages", "bursts"]].sum()
    mean = (sums["messages"] / sums["bursts"].where(sums["bursts"] > 0)).rename("mean")
    return pd.DataFrame(mean).join(groups["messages_max"].max().rename("max")).reindex(axis.points)


def depth(rows: pd.DataFrame, axis: Axis) -> dict[tuple[str, str], pd.DataFrame]:
    """Maximum of `ready` and `unacked` messages by step, for each queue (vhost, name), the deepest first."""
    shaped: dict[tuple[str, str], pd.DataFrame] = {}
    for (vhost, queue), mine in rows.groupby(["vhost", "queue"]):
        most = mine.groupby(axis.step_of(mine["minute"]))[["messages_ready_max", "messages_unacked_max"]].max()
        most.columns = pd.Index(["ready", "unacked"])
        shaped[str(vhost), str(queue)] = most.astype(float).reindex(axis.points)
    return dict(sorted(shaped.items(), key=lambda item: -float(item[1].sum(axis=1).max())))


def redelivered(rows: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Messages `redelivered` over all queues, by step."""
    return _sums(rows, axis, ["redelivered"])


def streams(rows: pd.DataFrame) -> list[str]:
    """The probe streams that represent a queue type, known types first; without control streams."""
    known = ("classic", "quorum", "stream")
    found = set(rows.loc[rows["stream"] == rows["queue_type"], "stream"].dropna())
    return [name for name in known if name in found] + sorted(found - set(known))


def gaps(shaped: Iterable[pd.DataFrame], axis: Axis) -> list[tuple[pd.Timestamp, pd.Timestamp]]:
    """Time ranges without data, as (start, end). They are marked, because no data does not mean no messages."""
    has_data = pd.Series(data=False, index=axis.points)
    for frame in shaped:
        has_data |= frame.notna().any(axis=1)
    width = pd.Timedelta(minutes=axis.step)
    spans: list[tuple[pd.Timestamp, pd.Timestamp]] = []
    for at in has_data.index[~has_data]:
        if spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], at + width)
        else:
            spans.append((at, at + width))
    return spans


def _sums(rows: pd.DataFrame, axis: Axis, columns: list[str]) -> pd.DataFrame:
    """Sums by step. The step in which the data ends is null unless it is complete: its sum would be too low."""
    summed = rows.groupby(axis.step_of(rows["minute"]))[columns].sum(min_count=1).astype(float)
    # A row is a whole step in ranges that are read from the hours.
    width = pd.Timedelta(minutes=axis.step if axis.step >= 60 else 1)
    if len(summed) and summed.index[-1] + pd.Timedelta(minutes=axis.step) > rows["minute"].max() + width:
        summed.iloc[-1] = float("nan")
    return summed.reindex(axis.points)

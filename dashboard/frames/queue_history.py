"""Series of one queue for its page: minutes of the history, then readings of the exporter; and marks. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pandas as pd

from ackscope import format as fmt
from ackscope.ranking import FindingEpisode
from ackscope.reports import FindingReport
from dashboard.data.model import MetricSeries
from dashboard.data.notes import Note
from dashboard.format.readable import parse_iso
from dashboard.frames import history_frames
from dashboard.frames.minute_frames import MIN_RANGE, Axis

RATES = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Series of the exporter -> measure of the history; both per second."""
LEVELS = {"ready": "ready", "unacked": "unacked", "consumers": "consumers"}

_COLUMNS = {**history_frames.MEASURES, "consumers": ("consumers_last", 1.0)}

CONTINUOUS = timedelta(minutes=4)
"""Values further apart are not connected."""

FINDING, ENDED, CONSUMERS, NOTE = "finding", "ended", "consumers", "note"

MAX_MARKS = 24
"""Marks of one kind; further ones would cover each other."""


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A moment on a chart: a finding that began or ended, consumers that went or came, or a note."""

    at: datetime
    kind: str
    text: str


def series(
    minutes: pd.DataFrame, lines: Iterable[MetricSeries], now: datetime | None, axis: Axis
) -> dict[str, pd.Series]:
    """Values by measure (`RATES` and `LEVELS`) and time; missing ones are null, and break the line.

    The history gives one value per step of the axis, at the middle of the step: the mean of its minutes. The exporter's
    readings follow it, each at its own time.

    Args:
        minutes: rows of one queue of `queues_1m`, with the columns of `history_answers.BAND_COLUMNS`.
        lines: series of `/api/v1/queue`.
        now: time of that response, which its points are relative to; None without one.
        axis: time axis.
    """
    live = {line.name: line for line in lines}
    found = {}
    for name, measure in {**RATES, **LEVELS}.items():
        old = by_step(minutes, axis, *_COLUMNS[measure])
        found[measure] = continued(old, live.get(name), now, axis).rename(measure)
    return found


def since_readings(lines: Iterable[MetricSeries], now: datetime | None, axis: Axis) -> Axis:
    """The axis from the minute of the first reading on, and at least `MIN_RANGE` long; the same without readings.

    Without history, a longer axis would squeeze the curves into its right edge. Arguments as in `series`.
    """
    oldest = [ago for line in lines for ago, value in line.line if value is not None]
    if now is None or not oldest:
        return axis
    first = (now - timedelta(seconds=max(oldest))).astimezone(axis.start.tzinfo).replace(second=0, microsecond=0)
    return replace(axis, start=max(axis.start, min(first, axis.end - MIN_RANGE)), step=1)


def continued(old: pd.Series, line: MetricSeries | None, now: datetime | None, axis: Axis) -> pd.Series:
    """A series of the history, and after its last value the readings of the exporter; null in a gap between both."""
    last = last_known(old)
    new = _live(line, now, axis, last)
    if not len(new):
        return old
    parts = [old[old.index < new.index[0]], new]
    if last is not None and new.index[0] - last > CONTINUOUS:
        parts.insert(1, pd.Series([float("nan")], index=pd.DatetimeIndex([last + CONTINUOUS / 2])))
    joined: pd.Series = pd.concat([each for each in parts if len(each)])
    return joined


def first_known(values: pd.Series) -> pd.Timestamp | None:
    """Time of the first value; None if all are missing."""
    known = pd.DatetimeIndex(values.index[values.notna()])
    return known[0] if len(known) else None


def last_known(values: pd.Series) -> pd.Timestamp | None:
    """Time of the last value; None if all are missing."""
    known = pd.DatetimeIndex(values.index[values.notna()])
    return known[-1] if len(known) else None


def by_step(minutes: pd.DataFrame, axis: Axis, column: str, divisor: float = 1.0) -> pd.Series:
    """A column of minute rows by step, at the middle of the step: the mean of its minutes."""
    points = axis.points + pd.Timedelta(minutes=axis.step) / 2
    if minutes.empty or column not in minutes:
        return pd.Series(float("nan"), index=points, dtype=float)
    means = minutes.groupby(axis.step_of(minutes["minute"]))[column].mean().astype(float).reindex(axis.points)
    return pd.Series(means.to_numpy(dtype=float) / divisor, index=points)


def _live(line: MetricSeries | None, now: datetime | None, axis: Axis, after: pd.Timestamp | None) -> pd.Series:
    if line is None or now is None:
        return pd.Series(dtype=float, index=pd.DatetimeIndex([], tz=axis.start.tzinfo))
    zone = axis.start.tzinfo
    points = [(now.astimezone(zone) - timedelta(seconds=ago), value) for ago, value in line.line]
    inside = [(at, value) for at, value in points if axis.start <= at < axis.end and (after is None or at > after)]
    return pd.Series(
        [float("nan") if value is None else float(value) for _, value in inside],
        index=pd.DatetimeIndex([at for at, _ in inside], tz=zone),
        dtype=float,
    )


def coverage(found: Mapping[str, pd.Series], axis: Axis) -> pd.DataFrame:
    """The steps of the axis that any series covers, for shading the others: 1, or null without data.

    Two values that follow each other cover what is between them. The end of the axis may lie in the future.
    """
    points = axis.points
    changes = np.zeros(len(points) + 1, dtype=int)

    def add(begin: np.ndarray, end: np.ndarray) -> None:
        np.add.at(changes, begin[begin < end], 1)
        np.add.at(changes, end[begin < end], -1)

    for values in found.values():
        known, times = values.notna().to_numpy(), pd.DatetimeIndex(values.index)
        inside = (times >= points[0]) & (times < points.shift(1)[-1])
        place = points.searchsorted(times[known & inside], side="right")
        add(place - 1, place)
        both = known[:-1] & known[1:]
        add(points.searchsorted(times[:-1][both], side="right"), points.searchsorted(times[1:][both]))
    known_last = [last for each in found.values() if (last := last_known(each)) is not None]
    if known_last:
        newest = pd.DatetimeIndex([max(known_last)])
        add(points.searchsorted(newest, side="right"), points.searchsorted(newest + CONTINUOUS))
    has = pd.Series(changes[:-1].cumsum() > 0, index=points)
    return pd.DataFrame({"data": has.astype(float).where(has)})


def consumer_marks(consumers: pd.Series) -> tuple[ChartMark, ...]:
    """The moments at which the number of consumers changed, the latest `MAX_MARKS`."""
    known = consumers.dropna()
    marks = []
    for at, before, after in zip(known.index[1:], known.to_numpy()[:-1], known.to_numpy()[1:], strict=True):
        if round(before) != round(after):
            went = "went" if after < before else "came"
            number = fmt.plural(abs(round(after) - round(before)), "consumer")
            text = f"{number} {went}: {round(before)} to {round(after)}"
            marks.append(ChartMark(at.to_pydatetime(), CONSUMERS, text))
    return tuple(marks[-MAX_MARKS:])


def finding_marks(
    findings: Iterable[FindingReport], episodes: Sequence[FindingEpisode], vhost: str, queue: str, axis: Axis
) -> tuple[ChartMark, ...]:
    """When findings about a queue began and ended within the axis: present ones, and those of the history."""
    zone = axis.start.tzinfo
    found: dict[tuple[str, str, int], ChartMark] = {}

    def add(rule: str, kind: str, wall: float) -> None:
        text = rule if kind == FINDING else f"{rule} ended"
        found.setdefault((rule, kind, round(wall / 60)), ChartMark(datetime.fromtimestamp(wall, zone), kind, text))

    present = set()
    for it in findings:
        began = parse_iso(it.since)
        if began is not None:
            present.add(it.rule)
            add(it.rule, FINDING, began)
    for each in episodes:
        # The history has the beginning of a present finding to the minute only: it would be a second mark.
        if each.subject == ("queue", vhost, queue) and (each.ended is not None or each.rule not in present):
            add(each.rule, FINDING, each.began)
            if each.ended is not None:
                add(each.rule, ENDED, each.ended)
    inside = sorted((it for it in found.values() if axis.start <= it.at < axis.end), key=lambda it: it.at)
    return tuple(inside[-MAX_MARKS:])


def note_marks(notes: Iterable[Note], axis: Axis) -> tuple[ChartMark, ...]:
    """Notes of people within the axis."""
    zone = axis.start.tzinfo
    marks = [
        ChartMark(datetime.fromtimestamp(it.at, zone), NOTE, f"{it.author or 'somebody'}: {it.text}") for it in notes
    ]
    return tuple([it for it in marks if axis.start <= it.at < axis.end][-MAX_MARKS:])


def bands(minutes: pd.DataFrame, rows: pd.DataFrame, axis: Axis, measures: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The baseline band of each of these measures, by step; measures without a band are left out."""
    shaped = {name: history_frames.with_band(minutes, rows, axis, name) for name in measures}
    return {name: lines for name, lines in shaped.items() if lines["low"].notna().any()}


def table(found: Mapping[str, pd.Series]) -> pd.DataFrame:
    """All series as rows for CSV: `at`, and one column per measure."""
    return (
        pd.DataFrame({name: values[~values.index.duplicated()] for name, values in found.items()})
        .rename_axis("at")
        .reset_index()
    )

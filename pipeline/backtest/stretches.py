"""Which part of a history can be replayed from what, and how it is cut into tasks. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from pipeline.hours import HOUR

LANDING, MINUTES = "landing", "minutes"
"""Where rows come from: landing has every change, minutes one reading a minute."""

LEAD, TREND_LEAD = 1800.0, 7800.0
"""Seconds that are replayed before a part, so that the window is full and lasting findings are known: the horizon of a
window and a heartbeat, or two hours of nodes."""

_MOST_ROWS = 1_000_000
"""Rows of one task, about 500 MB of Python objects."""

_LONGEST = 24


@dataclass(frozen=True, slots=True)
class HistoryStretch:
    """A part of the history of one cluster.

    Attributes:
        grain: `LANDING` or `MINUTES`.
        start, end: hours since 1970, `end` exclusive; at most a day.
    """

    grain: str
    start: int
    end: int


def stretches(
    landed: Mapping[int, float], minutes: Mapping[int, float], start: int, end: int, cores: int = 1
) -> Iterator[HistoryStretch]:
    """Yield the parts of a history, in order of time.

    Args:
        landed: hours since 1970 with complete landing rows -> estimated number of rows.
        minutes: hours that have minutes -> estimated number of rows.
        start: first hour since 1970.
        end: the hour after the last.
        cores: tasks that should at least be there, if there is data enough.
    """
    known = [hour for hour in range(start, end) if hour in landed or hour in minutes]
    longest = max(3, min(_LONGEST, -(-len(known) // max(cores, 1))))
    numbered = enumerate((hour, LANDING if hour in landed else MINUTES) for hour in known)
    for (_, grain), run in groupby(numbered, key=lambda it: (it[1][0] - it[0], it[1][1])):
        hours = [hour for _, (hour, _) in run]
        first, rows = hours[0], 0.0
        for hour in hours:
            here = (landed if grain == LANDING else minutes)[hour]
            if hour > first and (hour - first >= longest or rows + here > _MOST_ROWS):
                yield HistoryStretch(grain, first, hour)
                first, rows = hour, 0.0
            rows += here
        yield HistoryStretch(grain, first, hours[-1] + 1)


def bounds(stretch: HistoryStretch, lead: float) -> tuple[float, float, float]:
    """Return start, end, and the time from which rows are needed, seconds since 1970."""
    start, end = float(stretch.start * HOUR), float(stretch.end * HOUR)
    return start, end, start - lead

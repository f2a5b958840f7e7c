"""Which minutes a rebuild makes anew, and in which portions: plans, without a look at a file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.hours import HOUR, runs
from pipeline.transforms import Transform

MINUTE = 60

ROWS_AT_ONCE = 4_000_000
"""Landing rows of one commit."""

COLLECTED_AT_ONCE = 2_400_000
"""Rollup rows of one Spark job: they pass through a heap of 1 GiB on their way here."""

Window = tuple[int, int]
"""From a full minute to before another, seconds since 1970."""

Work = dict[Transform, dict[int, Window]]
"""What each transform has to do, by hour since 1970."""


def whole(hour: int) -> Window:
    """All minutes of an hour."""
    return hour * HOUR, (hour + 1) * HOUR


def narrowed(hours: Iterable[int], spans: Iterable[tuple[int, int]], memory: int) -> dict[int, Window]:
    """Of each hour, the minutes from the first to the last that rows of these times matter to.

    Args:
        hours: all that may be made anew.
        spans: times from the first to the last row of a file, microseconds since 1970.
        memory: seconds before and after a row that depend on it.
    """
    wanted = set(hours)
    found: dict[int, Window] = {}
    for first, last in spans:
        low, high = first // 1_000_000 - memory, last // 1_000_000 + memory
        start, end = low - low % MINUTE, high - high % MINUTE + MINUTE
        for hour in range(start // HOUR, (end - 1) // HOUR + 1):
            if hour in wanted:
                begin, until = whole(hour)
                new = max(begin, start), min(until, end)
                found[hour] = _both(found.get(hour, new), new)
    return found


def together(windows: Mapping[int, Window], hours: Iterable[int]) -> Window:
    """From the first minute to the last, of all of these hours; an empty one where there is none."""
    mine = [windows[hour] for hour in hours if hour in windows]
    return (min(start for start, _ in mine), max(end for _, end in mine)) if mine else (0, 0)


def hours_of(work: Work) -> set[int]:
    """All hours in which something is to do."""
    return {hour for windows in work.values() for hour in windows}


def joined(one: Work, other: Work) -> Work:
    """The work of both, each hour once."""
    found = {transform: dict(windows) for transform, windows in one.items()}
    for transform, windows in other.items():
        mine = found.setdefault(transform, {})
        for hour, window in windows.items():
            mine[hour] = _both(mine.get(hour, window), window)
    return found


def only(work: Work, hours: set[int]) -> Work:
    """The work in these hours."""
    return without(work, hours_of(work) - hours)


def without(work: Work, hours: set[int]) -> Work:
    """The work in all other hours."""
    left = {
        transform: {hour: window for hour, window in windows.items() if hour not in hours}
        for transform, windows in work.items()
    }
    return {transform: windows for transform, windows in left.items() if windows}


def chunks(work: Work, rows: Callable[[Transform, Window], int]) -> Iterator[list[list[int]]]:
    """Hours to rebuild in one commit: portions that lie together in a date, altogether not too many rows.

    `rows` tells how many landing rows a transform reads for a window.
    """
    chunk: list[list[int]] = []
    left = ROWS_AT_ONCE
    for run in runs(hours_of(work)):
        most = max(rows(transform, together(windows, run)) for transform, windows in work.items())
        step = max(1, ROWS_AT_ONCE * len(run) // max(most, 1))
        for start in range(0, len(run), step):
            portion = run[start : start + step]
            mine = most * len(portion) // len(run)
            if chunk and mine > left:
                yield chunk
                chunk, left = [], ROWS_AT_ONCE
            chunk.append(portion)
            left -= mine
    if chunk:
        yield chunk


_MARGIN = 1.25
"""More than was seen, for the next hours may have more of it."""


@dataclass(slots=True)
class Growth:
    """How many rollup rows a landing row becomes.

    Attributes:
        seen: at first the most that may be, then as it was, and a little more; 0: fewer than there are landing rows.
    """

    seen: float

    def measured(self, landing: float, rollup: int) -> None:
        """So many rows became so many."""
        if self.seen and landing and rollup:
            self.seen = rollup / landing * _MARGIN


def steps(run: Sequence[int], each: float, growth: Growth) -> Iterator[list[int]]:
    """Hours of a run whose rollup rows may be collected at once; each step is taken once the one before was measured.

    Args:
        run: hours since 1970.
        each: landing rows of one of them.
        growth: of these rows, as known when a step is taken.
    """
    start = 0
    while start < len(run):
        expected = each * growth.seen
        count = max(1, int(COLLECTED_AT_ONCE / expected)) if expected else len(run)
        yield list(run[start : start + count])
        start += count


def _both(one: Window, other: Window) -> Window:
    return min(one[0], other[0]), max(one[1], other[1])

"""Which minutes a rebuild makes anew, and in which portions: plans, without a look at a file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.hours import HOUR, runs
from pipeline.transforms import Transform

MINUTE = 60

MAX_LANDING_ROWS = 4_000_000
"""Landing rows of one commit."""

MAX_COLLECTED_ROWS = 2_400_000
"""Rollup rows of one Spark job: they pass through a heap of 1 GiB on their way here."""

MinuteRange = tuple[int, int]
"""From a full minute to before another, seconds since 1970."""

Work = dict[Transform, dict[int, MinuteRange]]
"""What each transform has to do, by hour since 1970."""


def whole_hour(hour: int) -> MinuteRange:
    """All minutes of an hour."""
    return hour * HOUR, (hour + 1) * HOUR


def narrow(hours: Iterable[int], spans: Iterable[tuple[int, int]], lookback: int) -> dict[int, MinuteRange]:
    """Of each hour, the minutes from the first to the last that rows of these times matter to.

    Args:
        hours: all that may be made anew.
        spans: times from the first to the last row of a file, microseconds since 1970.
        memory: seconds before and after a row that depend on it.
    """
    hours_to_rebuild = set(hours)
    found: dict[int, MinuteRange] = {}
    for first, last in spans:
        low, high = first // 1_000_000 - lookback, last // 1_000_000 + lookback
        start, end = low - low % MINUTE, high - high % MINUTE + MINUTE
        for hour in range(start // HOUR, (end - 1) // HOUR + 1):
            if hour in hours_to_rebuild:
                begin, until = whole_hour(hour)
                new = max(begin, start), min(until, end)
                found[hour] = _union(found.get(hour, new), new)
    return found


def covering_range(windows: Mapping[int, MinuteRange], hours: Iterable[int]) -> MinuteRange:
    """From the first minute to the last, of all of these hours; an empty one where there is none."""
    mine = [windows[hour] for hour in hours if hour in windows]
    return (min(start for start, _ in mine), max(end for _, end in mine)) if mine else (0, 0)


def hours_of(work: Work) -> set[int]:
    """All hours in which something is to do."""
    return {hour for windows in work.values() for hour in windows}


def merge_work(one: Work, other: Work) -> Work:
    """The work of both, each hour once."""
    found = {transform: dict(windows) for transform, windows in one.items()}
    for transform, windows in other.items():
        mine = found.setdefault(transform, {})
        for hour, window in windows.items():
            mine[hour] = _union(mine.get(hour, window), window)
    return found


def restrict(work: Work, hours: set[int]) -> Work:
    """The work in these hours."""
    return exclude(work, hours_of(work) - hours)


def exclude(work: Work, hours: set[int]) -> Work:
    """The work in all other hours."""
    left = {
        transform: {hour: window for hour, window in windows.items() if hour not in hours}
        for transform, windows in work.items()
    }
    return {transform: windows for transform, windows in left.items() if windows}


def chunks(work: Work, rows: Callable[[Transform, MinuteRange], int]) -> Iterator[list[list[int]]]:
    """Hours to rebuild in one commit: portions that lie together in a date, altogether not too many rows.

    `rows` tells how many landing rows a transform reads for a window.
    """
    chunk: list[list[int]] = []
    left = MAX_LANDING_ROWS
    for run in runs(hours_of(work)):
        most = max(rows(transform, covering_range(windows, run)) for transform, windows in work.items())
        step = max(1, MAX_LANDING_ROWS * len(run) // max(most, 1))
        for start in range(0, len(run), step):
            portion = run[start : start + step]
            mine = most * len(portion) // len(run)
            if chunk and mine > left:
                yield chunk
                chunk, left = [], MAX_LANDING_ROWS
            chunk.append(portion)
            left -= mine
    if chunk:
        yield chunk


_GROWTH_MARGIN = 1.25
"""More than was seen, for the next hours may have more of it."""


@dataclass(slots=True)
class GrowthRate:
    """How many rollup rows a landing row becomes.

    Attributes:
        seen: at first the most that may be, then as it was, and a little more; 0: fewer than there are landing rows.
    """

    factor: float

    def update(self, landing: float, rollup: int) -> None:
        """So many rows became so many."""
        if self.factor and landing and rollup:
            self.factor = rollup / landing * _GROWTH_MARGIN


def split_steps(run: Sequence[int], each: float, growth: GrowthRate) -> Iterator[list[int]]:
    """Hours of a run whose rollup rows may be collected at once; each step is taken once the one before was measured.

    Args:
        run: hours since 1970.
        each: landing rows of one of them.
        growth: of these rows, as known when a step is taken.
    """
    start = 0
    while start < len(run):
        expected = each * growth.factor
        count = max(1, int(MAX_COLLECTED_ROWS / expected)) if expected else len(run)
        yield list(run[start : start + count])
        start += count


def _union(one: MinuteRange, other: MinuteRange) -> MinuteRange:
    return min(one[0], other[0]), max(one[1], other[1])

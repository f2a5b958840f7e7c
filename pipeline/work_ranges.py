"""Which minutes a rebuild recomputes, and in which portions. Pure planning, no I/O."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.hours import HOUR, runs
from pipeline.transforms import Transform

MINUTE = 60

# Landing rows read by one commit; more where executors write, because no rows pass through the driver then: it plans as
# many queries for each commit, whatever the number of rows.
MAX_LANDING_ROWS, MAX_LANDING_ROWS_IN_CLUSTER = 4_000_000, 8_000_000

# Rollup rows collected by one Spark job; they pass through a heap of 1 GiB.
MAX_COLLECTED_ROWS = 2_400_000

# Start and end (exclusive) of a range of full minutes, seconds since 1970.
MinuteRange = tuple[int, int]

# The minutes that each transform has to rebuild, by hour since 1970.
Work = dict[Transform, dict[int, MinuteRange]]


def whole_hour(hour: int) -> MinuteRange:
    """All minutes of an hour."""
    return hour * HOUR, (hour + 1) * HOUR


def narrow(hours: Iterable[int], spans: Iterable[tuple[int, int]], lookback: int) -> dict[int, MinuteRange]:
    """For each hour, the range of minutes that may change with rows of these times.

    Args:
        hours: hours that may be rebuilt.
        spans: first and last time of a file's rows, microseconds since 1970.
        lookback: seconds before and after a row that depend on it.
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
    """The range from the first minute to the last of all these hours; an empty one without any."""
    mine = [windows[hour] for hour in hours if hour in windows]
    return (min(start for start, _ in mine), max(end for _, end in mine)) if mine else (0, 0)


def hours_of(work: Work) -> set[int]:
    """All hours with work."""
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


def chunks(work: Work, rows: Callable[[Transform, MinuteRange], int], limit: int) -> Iterator[list[list[int]]]:
    """Split work into commits: lists of portions of consecutive hours of a date, with a bounded number of rows.

    `rows` returns how many landing rows a transform reads for a range; `limit` is how many a commit reads.
    """
    chunk: list[list[int]] = []
    left = limit
    for run in runs(hours_of(work)):
        most = _most_rows(work, run, rows)
        step = max(1, limit * len(run) // max(most, 1))
        for start in range(0, len(run), step):
            portion = run[start : start + step]
            mine = most * len(portion) // len(run)
            if chunk and mine > left:
                yield chunk
                chunk, left = [], limit
            chunk.append(portion)
            left -= mine
    if chunk:
        yield chunk


def read_rows(work: Work, rows: Callable[[Transform, MinuteRange], int]) -> int:
    """Landing rows that this work reads, by the transform that reads most; `rows` as in `chunks`."""
    return sum(_most_rows(work, run, rows) for run in runs(hours_of(work)))


def _most_rows(work: Work, run: Sequence[int], rows: Callable[[Transform, MinuteRange], int]) -> int:
    return max(rows(transform, covering_range(windows, run)) for transform, windows in work.items())


# Safety factor: the next hours may yield more rollup rows per landing row.
_GROWTH_MARGIN = 1.25


@dataclass(slots=True)
class GrowthRate:
    """Rollup rows per landing row.

    Attributes:
        factor: at first the maximum, then the measured value with a margin; 0: fewer rollup rows than landing rows.
    """

    factor: float

    def update(self, landing: float, rollup: int) -> None:
        """Record how many rollup rows a number of landing rows became."""
        if self.factor and landing and rollup:
            self.factor = rollup / landing * _GROWTH_MARGIN


def split_steps(run: Sequence[int], each: float, growth: GrowthRate) -> Iterator[list[int]]:
    """Split hours so that their rollup rows can be collected together; each step uses the growth measured before.

    Args:
        run: hours since 1970.
        each: landing rows per hour.
        growth: read when a step is taken.
    """
    start = 0
    while start < len(run):
        expected = each * growth.factor
        count = max(1, int(MAX_COLLECTED_ROWS / expected)) if expected else len(run)
        yield list(run[start : start + count])
        start += count


def _union(one: MinuteRange, other: MinuteRange) -> MinuteRange:
    return min(one[0], other[0]), max(one[1], other[1])

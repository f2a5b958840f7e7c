"""Summaries of the last minute or of a whole run: quantiles within 1 %, and the exact maximum."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import Any

from hdrh.histogram import HdrHistogram

from ackscope.records import Quantiles

MICROSECOND = 1e-6
_HIGHEST = 3_600_000_000


class _Slice:
    __slots__ = ("ends", "histogram", "maximum")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.histogram: Any = HdrHistogram(1, _HIGHEST, 2)
        self.maximum = 0.0


class RecentValues:
    """Values of a sliding window, stored as a ring of histograms. The oldest histogram is dropped as a whole.

    Args:
        unit: resolution of the values; durations in microseconds.
        span: length of the window in seconds; None for everything since the start.
        slices: the window advances in steps of span / slices.
    """

    def __init__(self, *, unit: float = MICROSECOND, span: float | None = 60.0, slices: int = 6) -> None:
        self._unit, self._span = unit, span
        self._step = float("inf") if span is None else span / slices
        self._ring: deque[_Slice] = deque(maxlen=1 if span is None else slices + 1)
        self._cached: Quantiles | None = None
        self._closed: tuple[tuple[float, float], Any] | None = None
        self._cached_at, self._cached_slices = 0.0, 0

    def record(self, value: float, now: float) -> None:
        """Add a value at `now` (monotonic seconds, never decreasing)."""
        self._cached_slices = 0
        if not self._ring or now >= self._ring[-1].ends:
            self._ring.append(_Slice(now + self._step))
        last = self._ring[-1]
        last.maximum = max(last.maximum, value)
        last.histogram.record_value(min(_HIGHEST, int(value / self._unit + 0.5)))

    def summary(self, now: float, *, age: float = 0.0) -> Quantiles:
        """Return the summary of the window, at most `age` seconds old."""
        live = self._live(now)
        if not live:
            return Quantiles()
        # A summary costs 0.1 ms, so it is cached while no values arrive.
        if self._cached is not None and (self._cached_slices == len(live) or now - self._cached_at < age):
            return self._cached
        self._cached, self._cached_at, self._cached_slices = self._summarise(live), now, len(live)
        return self._cached

    def _summarise(self, live: list[_Slice]) -> Quantiles:
        maximum = max(part.maximum for part in live)
        parts = [live[-1].histogram] if len(live) == 1 else [self._past(live[:-1]), live[-1].histogram]
        count = sum(part.get_total_count() for part in parts)
        p50, p90, p99 = (min(value * self._unit, maximum) for value in _percentiles(parts, count))
        return Quantiles(count=count, p50=p50, p90=p90, p99=p99, max=maximum)

    def _past(self, closed: list[_Slice]) -> Any:
        """Return the closed slices merged into one. It is recomputed only when a slice is closed or dropped."""
        known = (closed[0].ends, closed[-1].ends)
        if self._closed is None or self._closed[0] != known:
            self._closed = (known, self._merged(closed))
        return self._closed[1]

    def buckets(self, now: float, edges: Sequence[float]) -> list[int]:
        """Count values at or below each edge and above the previous one. The last count is for all larger values."""
        counts = [0] * (len(edges) + 1)
        live = self._live(now)
        for item in self._merged(live).get_recorded_iterator() if live else ():
            value = item.value_iterated_to * self._unit
            place = next((index for index, edge in enumerate(edges) if value <= edge * 1.005), len(edges))
            counts[place] += item.count_at_value_iterated_to
        return counts

    def _live(self, now: float) -> list[_Slice]:
        if self._span is None:
            return list(self._ring)
        return [part for part in self._ring if part.ends - self._step > now - self._span]

    def _merged(self, live: list[_Slice]) -> Any:
        merged = HdrHistogram(1, _HIGHEST, 2)
        for part in live:
            merged.add(part.histogram)
        return merged


def _percentiles(parts: Sequence[Any], count: int) -> list[float]:
    """Return p50, p90 and p99 of one or two histograms. Same result as the method of HdrHistogram, but faster."""
    any_part = parts[0]
    highest = max(part.max_value for part in parts)
    filled = any_part._counts_index_for(highest) + 1  # noqa: SLF001  the rest of the array is long and empty
    counts = [part.counts[:filled] for part in parts]
    sums = list(accumulate(counts[0] if len(counts) == 1 else map(add, *counts)))
    wanted = (max(1, int(share * count + 0.5)) for share in (0.5, 0.9, 0.99))
    return [
        any_part.get_highest_equivalent_value(any_part.get_value_from_index(bisect_left(sums, at))) for at in wanted
    ]


class RecentCounts:
    """Counts by name over a sliding window, with the same steps as `RecentValues`."""

    def __init__(self, *, span: float | None = 60.0, slices: int = 6) -> None:
        self._span = float("inf") if span is None else span
        self._step = self._span / slices
        self._ring: deque[tuple[float, Counter[str]]] = deque(maxlen=slices + 1)

    def add(self, name: str, now: float) -> None:
        """Add one."""
        if not self._ring or now >= self._ring[-1][0]:
            self._ring.append((now + self._step, Counter()))
        self._ring[-1][1][name] += 1

    def total(self, now: float) -> Counter[str]:
        """Return the counts of the window."""
        total: Counter[str] = Counter()
        for ends, counts in self._ring:
            if self._span == float("inf") or ends - self._step > now - self._span:
                total.update(counts)
        return total

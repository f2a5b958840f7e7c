"""Arithmetic on readings of one object over time: stretches, deltas, restarts.

Absent counters: the management API shows a counter only after its first event. A counter that is absent on an existing
object is therefore 0. If the broker keeps no counters, the engine does not run the rules that need them.

Restarts: a counter that falls (or vanishes) means that the object or the broker restarted. Earlier readings are then
left out, so no sum spans a restart.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Queue
from diagnosis.window import Series, Timestamped

REFRESH = 5.2
"""Seconds between two refreshes of the broker's statistics, with some delay."""

T = TypeVar("T")
C = TypeVar("C", Queue, Channel)


def span(series: Sequence[Timestamped[T]]) -> float:
    """Return the seconds from the first to the last reading."""
    return series[-1].at.since(series[0].at) if series else 0.0


def count(stats: MessageStats, *counters: str) -> int:
    """Return the sum of some counters; absent ones count as 0."""
    total = 0
    for counter in counters:
        total += getattr(stats, counter) or 0
    return total


def delta(series: Series[C], *counters: str) -> int:
    """Return the total increase of some counters over a series that contains no restart."""
    return count(series[-1].value.stats, *counters) - count(series[0].value.stats, *counters) if series else 0


def piled_up_seconds(series: Series[Queue]) -> float:
    """Return how long the messages that are ready now took to arrive, at the present rate; 0 if none arrive."""
    queue = series[-1].value
    # Over a short time, the broker's own rate is more exact than two readings of a counter.
    rate = queue.rates.get("publish") or delta(series, "publish") / max(1.0, span(series))
    return (queue.messages_ready or 0) / rate if rate > 0 else 0.0


def gathered_seconds(total: float, gained: float, seconds: float) -> float:
    """Return for how long at least something has gathered, at its present pace; 0 if that cannot be seen.

    The broker refreshes its counters every 5 s, so two readings may show what was gained in `REFRESH` seconds less.

    Args:
        total: what has gathered.
        gained: how many of these within the last `seconds`.
        seconds: time between two readings.
    """
    return total * max(0.0, seconds - REFRESH) / gained if gained > 0 else 0.0


def life(series: Series[C]) -> Series[C]:
    """Return the latest stretch in which no counter fell, that is since the last restart."""
    return stretch(series, lambda older, newer: not newer.value.stats.began_again(older.value.stats))


def stretch(series: Series[T], holds: Callable[[Timestamped[T], Timestamped[T]], bool]) -> Series[T]:
    """Return the longest tail of `series` in which `holds` is true for each pair of consecutive readings."""
    start = len(series) - 1
    while start > 0 and holds(series[start - 1], series[start]):
        start -= 1
    return series[max(start, 0) :]


def last(series: Series[T], seconds: float) -> Series[T]:
    """Return the shortest tail of `series` that spans at least `seconds`; all of it if it is shorter."""
    for start in range(len(series) - 1, 0, -1):
        if series[-1].at.since(series[start].at) >= seconds:
            return series[start:]
    return series


def readings_since(series: Sequence[Timestamped[T]], moment: float) -> Series[T]:
    """Return the readings at or after a moment, seconds of the monotonic clock."""
    return tuple(seen for seen in series if seen.at.mono >= moment)


def readings_until(series: Sequence[Timestamped[T]], moment: float) -> Series[T]:
    """Return the readings at or before a moment, seconds of the monotonic clock."""
    return tuple(seen for seen in series if seen.at.mono <= moment)


def unmoved_tail(series: Series[C], *counters: str) -> Series[C]:
    """Return the longest tail of `series` in which the sum of some counters stays the same."""
    return stretch(series, lambda older, newer: delta((older, newer), *counters) == 0)


def without_consumers(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether a queue had no consumer at two readings."""
    return older.value.consumers == newer.value.consumers == 0


def steps(series: Series[T], seconds: float) -> tuple[tuple[Timestamped[T], Timestamped[T]], ...]:
    """Return adjacent pairs of readings at least `seconds` apart, newest last.

    The broker refreshes its counters every 5 s. Of pairs that are closer, some would show no increase and some twice
    the increase.
    """
    if not series:
        return ()
    marks = [series[-1]]
    for item in reversed(series[:-1]):
        if marks[-1].at.since(item.at) >= seconds:
            marks.append(item)
    return tuple(pairwise(reversed(marks)))


def rising(series: Series[T], seconds: float, size: Callable[[T], int | None]) -> Series[T]:
    """Return the longest tail in which a number rises with each step of at least `seconds`; () without one.

    A number that is None ends it.
    """
    start = None
    for older, newer in reversed(steps(series, seconds)):
        before, after = size(older.value), size(newer.value)
        if before is None or after is None or after <= before:
            break
        start = older.at
    return () if start is None else tuple(seen for seen in series if seen.at.mono >= start.mono)


_BESIDE_LARGEST = 0.25
"""Share of a growth that other rises than the largest one must have."""


def grows_at_once(numbers: Sequence[int]) -> bool:
    """Return whether a number grew in one step, apart from little: a stock that is made, and no growth that goes on."""
    gained = numbers[-1] - numbers[0] if numbers else 0
    largest = max((newer - older for older, newer in pairwise(numbers)), default=0)
    return gained - largest < _BESIDE_LARGEST * gained


def nearest(series: Series[T], at: Instant) -> Timestamped[T]:
    """Return the reading whose time is nearest to a moment; of two, the earlier one."""
    return min(series, key=lambda seen: (abs(seen.at.since(at)), seen.at.mono))


def restarted(older: MessageStats, newer: MessageStats) -> bool:
    """Return whether a counter fell, so that they count from their beginning again."""
    return newer.began_again(older)

"""Arithmetic on the same object at several moments: stretches, deltas, restarts.

Absent counters: the management API shows a counter with its first event only, so one that is absent while its
object exists and is counted at all stands at 0. Where nothing is counted, the engine does not ask the rules.
Restarts: a counter that falls (or vanishes) belongs to another life of the object, or of the broker; what was
seen before is then left out, and nothing is added up across it.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import pairwise
from operator import attrgetter
from typing import TypeVar

from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Queue
from diagnosis.window import Series, Timestamped

T = TypeVar("T")
C = TypeVar("C", Queue, Channel)

_all = attrgetter(*(field.name for field in fields(MessageStats)))


def span(series: Sequence[Timestamped[T]]) -> float:
    """Seconds from the first to the last moment."""
    return series[-1].at.since(series[0].at) if series else 0.0


def count(stats: MessageStats, *counters: str) -> int:
    """The sum of some counters, absent ones at 0."""
    return sum(getattr(stats, counter) or 0 for counter in counters)


def delta(series: Series[C], *counters: str) -> int:
    """What some counters gained, together, over a series without a restart in it."""
    return count(series[-1].value.stats, *counters) - count(series[0].value.stats, *counters) if series else 0


def life(series: Series[C]) -> Series[C]:
    """The latest stretch in which no counter fell."""
    return stretch(series, lambda older, newer: not _fell(older.value.stats, newer.value.stats))


def stretch(series: Series[T], holds: Callable[[Timestamped[T], Timestamped[T]], bool]) -> Series[T]:
    """The longest end of `series` in which `holds` is true of each moment and the next."""
    start = len(series) - 1
    while start > 0 and holds(series[start - 1], series[start]):
        start -= 1
    return series[max(start, 0) :]


def last(series: Series[T], seconds: float) -> Series[T]:
    """The shortest end of `series` that spans at least `seconds`; all of it where it is shorter."""
    for start in range(len(series) - 1, 0, -1):
        if series[-1].at.since(series[start].at) >= seconds:
            return series[start:]
    return series


def steps(series: Series[T], seconds: float) -> tuple[tuple[Timestamped[T], Timestamped[T]], ...]:
    """Pairs at least `seconds` apart, newest last, each beginning where the one before ended.

    The broker refreshes its figures every 5 s: of pairs that are nearer, some gain nothing and some twice as much.
    """
    if not series:
        return ()
    marks = [series[-1]]
    for item in reversed(series[:-1]):
        if marks[-1].at.since(item.at) >= seconds:
            marks.append(item)
    return tuple(pairwise(reversed(marks)))


def _fell(older: MessageStats, newer: MessageStats) -> bool:
    if older is newer:
        return False
    return any((after or 0) < (before or 0) for before, after in zip(_all(older), _all(newer), strict=True))

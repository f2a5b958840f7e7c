"""Sparkline series of the last 30 minutes, from the window: gauges as read, counters as rates. Pure."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from diagnosis.window import Series, Timestamped, Window

T = TypeVar("T")
Point = tuple[float, float | None]
"""(seconds before now, value); None marks a gap."""

REACH = 1800.0
"""Length of a series in seconds."""
STEP = 20.0
"""Default of the minimum seconds between points: the broker refreshes its statistics every 5 s."""
_GAP = 240.0
"""Readings further apart, in seconds, are not connected."""


def recent_readings(window: Window, family: str) -> Series[Any]:
    """Readings of overview or nodes: all of the last minutes, and one per minute before."""
    found = {seen.at.mono: seen for seen in (*window.trend(family), *window.readings(family))}
    return tuple(found[moment] for moment in sorted(found))


def gauge_points(
    series: Series[T], read: Callable[[T], float | None], now: Instant, reach: float = REACH, step: float = STEP
) -> list[Point]:
    """Return a gauge at each reading of the last `reach` seconds, oldest first; a gap adds a point without a value."""
    points: list[Point] = []
    before: Timestamped[T] | None = None
    for seen in _marks(series, now, reach, step):
        if before is not None and seen.at.since(before.at) > _GAP:
            points.append((now.since(before.at), None))
        points.append((now.since(seen.at), read(seen.value)))
        before = seen
    return points


def rate_points(series: Series[T], count: Callable[[T], int | None], now: Instant, step: float = STEP) -> list[Point]:
    """Return the rate of a counter, per second, at each reading; None after a reset and across a gap."""
    points: list[Point] = []
    marks = _marks(series, now, REACH, step)
    for older, newer in pairwise(marks):
        seconds = newer.at.since(older.at)
        before, after = count(older.value), count(newer.value)
        known = before is not None and after is not None and after >= before and seconds <= _GAP
        points.append((now.since(newer.at), (after - before) / seconds if known else None))  # type: ignore[operator]
    return points


def counter_value(stats: MessageStats, name: str) -> int | None:
    """Return a counter. A missing one is 0 if others exist: the broker omits counters before their first event."""
    value: int | None = getattr(stats, name)
    return value if value is not None or stats == MessageStats() else 0


def queue_series(window: Window, vhost: str | None, name: str, place: int = 0) -> Series[Queue]:
    """Return a queue in the latest consecutive readings that contain it, oldest first.

    The position of a queue in the list rarely changes: in practice only one list in 16 is searched, and none if `place`
    is its position in the latest.
    """
    found: list[Timestamped[Queue]] = []
    for seen in reversed(window.readings("queues")):
        at = _find(seen.value, vhost, name, place)
        if at is None:
            break
        place = at
        found.append(Timestamped(seen.at, seen.value[at]))
    return tuple(reversed(found))


def by_details_time(series: Series[Queue]) -> Series[Queue]:
    """Return the readings dated by their details, without repeats: details may be read less often than totals."""
    found: list[Timestamped[Queue]] = []
    for seen in series:
        at = seen.value.details_at or seen.at
        if not found or at.mono > found[-1].at.mono:
            found.append(Timestamped(at, seen.value))
    return tuple(found)


def _find(queues: Sequence[Queue], vhost: str | None, name: str, guess: int) -> int | None:
    if guess < len(queues) and queues[guess].key == (vhost, name):
        return guess
    return next((place for place, it in enumerate(queues) if it.name == name and it.vhost == vhost), None)


def _marks(series: Series[T], now: Instant, reach: float, step: float) -> Series[T]:
    """Return the newest reading, and earlier ones at least `step` seconds apart, up to `reach` seconds ago."""
    marks: list[Timestamped[T]] = []
    for seen in reversed(series):
        if now.since(seen.at) > reach:
            break
        if not marks or marks[-1].at.since(seen.at) >= step:
            marks.append(seen)
    return tuple(reversed(marks))

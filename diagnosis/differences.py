"""The queues of several readings by their name, held as what changed from one reading to the next.

A dictionary for each of sixteen readings of 100,000 queues takes 250 MB and most of a second, at every look; nearly all
of them would hold the very same objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.window import Series

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Step:
    """From one reading back to the one before it.

    Attributes:
        at: of the reading before.
        others: who was there as another object, or is there no more.
        came: keys of those who were not there yet.
    """

    at: Instant
    others: dict[Key, Queue]
    came: frozenset[Key]


class Readings:
    """Readings of queues, to be asked for one queue after the other.

    Args:
        series: the readings, oldest first.
    """

    def __init__(self, series: Series[tuple[Queue, ...]]) -> None:
        self._latest = {queue.key: queue for queue in series[-1].value} if series else {}
        self._at = series[-1].at if series else None
        self._steps = [
            _Step(older.at, *_differences(older.value, newer.value))
            for older, newer in zip(reversed(series[:-1]), reversed(series), strict=False)
        ]

    def of(self, key: Key) -> list[tuple[Instant, Queue | None]]:
        """A queue at every reading, oldest first; None where it is not in it."""
        if self._at is None:
            return []
        queue = self._latest.get(key)
        found = [(self._at, queue)]
        for step in self._steps:
            queue = _before(step, key, queue)
            found.append((step.at, queue))
        return found[::-1]

    def ago(self, key: Key, seconds: float) -> Queue | None:
        """A queue at the latest of the readings that are so much older than the last one; None where there is none."""
        if self._at is None:
            return None
        queue = self._latest.get(key)
        if seconds <= 0:
            return queue
        for step in self._steps:
            queue = _before(step, key, queue)
            if self._at.since(step.at) >= seconds:
                return queue
        return None


def _before(step: _Step, key: Key, queue: Queue | None) -> Queue | None:
    return step.others.get(key, None if key in step.came else queue)


def _differences(older: Sequence[Queue], newer: Sequence[Queue]) -> tuple[dict[Key, Queue], frozenset[Key]]:
    if older is newer:
        return {}, frozenset()
    if len(older) == len(newer):
        # As long as none comes or goes, each has its place.
        pairs = [(one, other) for one, other in zip(older, newer, strict=True) if one is not other]
        if all(one.key == other.key for one, other in pairs):
            return {one.key: one for one, _ in pairs}, frozenset()
    here, there = set(map(id, newer)), set(map(id, older))
    others = {queue.key: queue for queue in older if id(queue) not in here}
    return others, frozenset(queue.key for queue in newer if id(queue) not in there) - others.keys()

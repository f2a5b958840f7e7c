"""Looks up queues in several readings by name, stored as the differences between one reading and the next.

One dictionary per reading would take 250 MB and most of a second per diagnosis for 16 readings of 100,000 queues, and
nearly all of the dictionaries would hold the same objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.series import restarted
from diagnosis.window import Series

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Step:
    """The difference between one reading and the reading before it.

    Attributes:
        at: time of the reading before.
        others: queues of the reading before that changed since or are gone.
        came: keys of queues that were not yet in the reading before.
    """

    at: Instant
    others: dict[Key, Queue]
    came: frozenset[Key]


class Readings:
    """Readings of all queues, with lookup of the history of a single queue.

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

    def of(self, key: Key, seconds: float = inf) -> list[tuple[Instant, Queue | None]]:
        """Return a queue at every reading, oldest first; None for readings without it.

        Args:
            key: virtual host and name of the queue.
            seconds: how far to go back at least, if the readings do.
        """
        if self._at is None:
            return []
        queue = self._latest.get(key)
        found = [(self._at, queue)]
        for step in self._steps:
            queue = _before(step, key, queue)
            found.append((step.at, queue))
            if self._at.since(step.at) >= seconds:
                break
        return found[::-1]

    def gone(self) -> dict[Key, Queue]:
        """Return the queues of earlier readings that the last one has not, as they were read last."""
        found: dict[Key, Queue] = {}
        for step in self._steps:
            for key, queue in step.others.items():
                if key not in self._latest:
                    found.setdefault(key, queue)
        return found

    def changed(self) -> frozenset[Key]:
        """Return the queues that differ between any two readings, or were not in all of them."""
        return frozenset(key for step in self._steps for key in (*step.others, *step.came))

    def interrupted(self, least: int) -> frozenset[Key]:
        """Return the queues that had at least so many messages in one reading and in the next none that continue it.

        They were deleted, declared again, restarted with their node, or their counters were not reported once.
        """
        found: set[Key] = set()
        newer_ones: dict[Key, Queue | None] = {}
        for step in self._steps:
            for key, older in step.others.items():
                if (older.messages or 0) >= least:
                    newer = newer_ones.get(key, self._latest.get(key))
                    if newer is None or newer.messages is None or restarted(older.stats, newer.stats):
                        found.add(key)
            newer_ones.update(step.others)
            newer_ones.update(dict.fromkeys(step.came))
        return frozenset(found)

    def ago(self, key: Key, seconds: float) -> Queue | None:
        """Return a queue at the latest reading at least `seconds` before the last one; None if there is none."""
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
        # If no queue came or went, every queue has the same position in both readings.
        pairs = [(one, other) for one, other in zip(older, newer, strict=True) if one is not other]
        if all(one.name == other.name and one.vhost == other.vhost for one, other in pairs):
            return {one.key: one for one, _ in pairs}, frozenset()
    here, there = set(map(id, newer)), set(map(id, older))
    others = {queue.key: queue for queue in older if id(queue) not in here}
    return others, frozenset(queue.key for queue in newer if id(queue) not in there) - others.keys()

"""Which of the broker's objects changed from one reading to the next, and whose turn it is to be landed anyway.

An object that did not change is the same Python object as before: a hundred thousand idle queues cost one comparison
of references each. What the rows say, and what their absence says, is told in `ackscope/tables.py`.
"""

from collections.abc import Callable, Sequence
from itertools import compress
from operator import is_not
from typing import Any, Generic, TypeVar
from zlib import crc32

from ackscope.clock import Instant
from ackscope.tables import HEARTBEAT
from exporter.landing.blocks import Block
from exporter.landing.shapes import RowMapping

T = TypeVar("T")

BEAT = 0.9 * HEARTBEAT
"""Seconds from one row of a quiet object to the next: readers go by the wall clock, which may be set."""

_SLOTS = round(BEAT)
"""One a second: the heartbeats of many objects are spread over them."""


def differences(before: Sequence[T], after: Sequence[T]) -> tuple[list[T], list[T]]:
    """The objects that are in `before` only, and those that are in `after` only, by identity."""
    if before is after:
        return [], []
    both = min(len(before), len(after))
    moved = list(compress(range(both), map(is_not, before, after)))
    left = [*map(before.__getitem__, moved), *before[both:]]
    added = [*map(after.__getitem__, moved), *after[both:]]
    if left and added:
        # An object that only moved to another place is in both.
        left_ids, came_ids = set(map(id, left)), set(map(id, added))
        left = [it for it in left if id(it) not in came_ids]
        added = [it for it in added if id(it) not in left_ids]
    return left, added


class ChangeTracker(Generic[T]):
    """Follows the objects of one kind and cluster from reading to reading.

    Args:
        shape: what of them is landed.
        cluster: its name.
        births: what was not in the reading before did not exist then, and a row says so.
        skip: says which objects are none of ours; asked once for each.

    Attributes:
        whole: the latest reading gave every object a row.
    """

    def __init__(
        self, shape: RowMapping[T], cluster: str, *, births: bool = True, skip: Callable[[T], bool] = lambda _: False
    ) -> None:
        self._shape, self._cluster, self._births, self._skip = shape, cluster, births, skip
        self._key, self._values = shape.key, shape.values
        self.whole = False
        self._objects: Sequence[T] = ()
        self._at: Instant | None = None
        self._fresh: set[int] = set()
        self._wheel: list[dict[Any, T]] = [{} for _ in range(_SLOTS)]

    def take(self, at: Instant, objects: Sequence[T]) -> list[Block]:
        """The rows of a reading that was complete at `at`, of it and of the one before."""
        last = self._at
        left, added = differences(self._objects, objects)
        olds = {self._key(it): it for it in left if not self._skip(it)}
        now: list[T] = []
        then: list[T] = []
        absent: list[Any] = []
        for it in added:
            if self._skip(it):
                continue
            key = self._key(it)
            self._slot(key)[key] = it
            old = olds.pop(key, None)
            if old is None:
                now.append(it)
                absent.append(key)
            elif self._values(old) != self._values(it):
                now.append(it)
                if id(old) not in self._fresh:
                    then.append(old)
        for key in olds:
            self._slot(key).pop(key, None)
        blocks = []
        if last is not None:
            blocks.append(self._shape.block(self._cluster, last, then, absent if self._births else ()))
            now += self._due(last, at, set(map(id, now)))
        blocks.append(self._shape.block(self._cluster, at, now, list(olds)))
        self._objects, self._at, self._fresh, self.whole = objects, at, set(map(id, now)), last is None
        return [block for block in blocks if block.rows]

    def _slot(self, key: Any) -> dict[Any, T]:
        # Not by hash, which differs from run to run.
        return self._wheel[crc32(repr(key).encode()) % _SLOTS]

    def _due(self, last: Instant, at: Instant, landed: set[int]) -> list[T]:
        """Objects whose turn came since the reading before; those that have a row now are passed over."""
        start, end = int(last.mono), int(at.mono)
        seconds = range(max(start, end - _SLOTS), end)
        return [it for second in seconds for it in self._wheel[second % _SLOTS].values() if id(it) not in landed]

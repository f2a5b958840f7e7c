"""Detects which objects changed between readings, and schedules heartbeat rows for the others.

An unchanged object is the same Python object as before, so 100,000 idle queues cost one reference comparison each.
`ackscope/tables.py` defines the meaning of rows and of missing rows.
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
"""Seconds between heartbeat rows of an unchanged object. Shorter than readers expect, as clocks may be adjusted."""

_SLOTS = round(BEAT)
"""One slot per second, to spread the heartbeats of many objects."""


def differences(before: Sequence[T], after: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the objects only in `before`, and those only in `after`, compared by identity."""
    if before is after:
        return [], []
    both = min(len(before), len(after))
    moved = list(compress(range(both), map(is_not, before, after)))
    left = [*map(before.__getitem__, moved), *before[both:]]
    added = [*map(after.__getitem__, moved), *after[both:]]
    if left and added:
        # An object that only changed its position is in both lists: remove it.
        left_ids, came_ids = set(map(id, left)), set(map(id, added))
        left = [it for it in left if id(it) not in came_ids]
        added = [it for it in added if id(it) not in left_ids]
    return left, added


class ChangeTracker(Generic[T]):
    """Tracks the objects of one kind and cluster between readings.

    Args:
        shape: mapping to rows.
        cluster: cluster name.
        births: whether an object missing from the previous reading did not exist then; if so, a row records that.
        skip: whether to ignore an object; called once for each.

    Attributes:
        whole: whether the latest reading produced a row for every object.
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
        """Return the rows for a reading completed at `at`, and late rows for the previous reading."""
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
        # Not hash(): it differs between processes.
        return self._wheel[crc32(repr(key).encode()) % _SLOTS]

    def _due(self, last: Instant, at: Instant, landed: set[int]) -> list[T]:
        """Return the objects whose heartbeat is due and that have no row in this reading yet."""
        start, end = int(last.mono), int(at.mono)
        seconds = range(max(start, end - _SLOTS), end)
        return [it for second in seconds for it in self._wheel[second % _SLOTS].values() if id(it) not in landed]

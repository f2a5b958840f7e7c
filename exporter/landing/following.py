"""Limits the landed channels and consumers to the most important ones."""

from collections.abc import Callable, Sequence
from heapq import nlargest
from typing import Any, Generic, TypeVar

from ackscope.clock import Instant
from exporter.landing.blocks import Block
from exporter.landing.changes import ChangeTracker, differences
from exporter.landing.shapes import RowMapping

T = TypeVar("T")

_LIVELY = 60.0
"""Seconds after a change for which an object ranks as changing, so that one idle poll does not cost its place."""


class PriorityTracker(Generic[T]):
    """Tracks the most important objects: those in trouble first, then changing ones, then those already tracked.

    Args:
        shape: mapping to rows.
        cluster: cluster name.
        trouble: severity of an object's state; 0 for no trouble.
        skip: whether to ignore an object.
    """

    def __init__(
        self,
        shape: RowMapping[T],
        cluster: str,
        trouble: Callable[[T], float],
        skip: Callable[[T], bool] = lambda _: False,
    ) -> None:
        self._key, self._values, self._trouble, self._skip = shape.key, shape.values, trouble, skip
        self._tracker = ChangeTracker(shape, cluster, births=False)
        self._objects: Sequence[T] = ()
        self._changed: dict[Any, float] = {}
        """Key of a tracked object -> monotonic time of its last change."""

    @property
    def whole(self) -> bool:
        """Whether the latest reading produced a row for every tracked object."""
        return self._tracker.whole

    def take(self, at: Instant, objects: Sequence[T], cap: int) -> tuple[list[Block], int]:
        """Return the rows of a reading, and how many objects in trouble or changing are beyond the limit."""
        left, added = differences(self._objects, objects)
        olds = {self._key(it): self._values(it) for it in left}
        changed = {key for it in added if olds.get(key := self._key(it)) != self._values(it)}
        ranks: dict[Any, tuple[int, bool, bool, float]] = {}
        present: dict[Any, T] = {}
        for it in objects:
            key, trouble = self._key(it), self._trouble(it)
            seen = at.mono if key in changed else self._changed.get(key)
            if (trouble or seen is not None) and not self._skip(it):
                lively = seen is not None and at.mono - seen < _LIVELY
                ranks[key], present[key] = (_order(trouble), lively, key in self._changed, trouble), it
        chosen = set(ranks if len(ranks) <= cap else nlargest(cap, ranks, key=ranks.__getitem__))
        # Keep the order: the tracker compares by position.
        order = [key for key in self._changed if key in chosen]
        order += [key for key in ranks if key in chosen and key not in self._changed]
        missed = sum(key not in chosen and (trouble > 0 or lively) for key, (trouble, lively, *_) in ranks.items())
        self._changed = {key: at.mono if key in changed else self._changed.get(key, at.mono) for key in order}
        self._objects = objects
        return self._tracker.take(at, tuple(present[key] for key in order)), missed


def _order(trouble: float) -> int:
    """Return the trouble in steps of a factor of eight, so that small differences do not displace tracked objects."""
    return (int(trouble).bit_length() + 2) // 3

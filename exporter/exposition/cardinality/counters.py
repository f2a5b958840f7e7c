"""Counters of many objects as one that never falls: what each rose by, between two readings of it.

An object's first reading tells nothing of what it rose by, so nothing is counted then. One that restarted counts from
zero. What it once told and now does not is kept until it tells again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from exporter.exposition.cardinality.sums import path_reader

T = TypeVar("T")
Numbers = tuple[float | None, ...]


class CounterRise(NamedTuple):
    """What the counters of one object rose by.

    Attributes:
        by: a number a path.
        fell_from: a number a path: what the counter was before it restarted, 0 where it did not; empty where none did.
    """

    key: Hashable
    type: str
    by: tuple[float, ...]
    fell_from: tuple[float, ...]


class RemainderCounters(Generic[T]):
    """Counters of one kind of objects.

    Args:
        paths: of the counters.
        told: whether an object told its counters, so that an absent one is one that has not moved yet.
    """

    def __init__(self, paths: Sequence[str], has_details: Callable[[T], bool]) -> None:
        self.paths, self._has_details = tuple(paths), has_details
        self._read: Callable[[T], Numbers] = path_reader(paths)
        self._held: dict[Hashable, Numbers] = {}
        self._hidden_rises: dict[Hashable, list[float]] = {}
        self._types: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * len(self.paths))
        self._remainder = [0.0] * len(self.paths)
        self._unknown: defaultdict[str, list[int]] = defaultdict(lambda: list(range(len(self.paths))))

    def add(self, objects: Iterable[T], type_of: Callable[[T], str]) -> None:
        """Take in objects that are read for the first time: from here on they are counted."""
        columns: defaultdict[str, list[Numbers]] = defaultdict(list)
        for it in objects:
            columns[type_of(it)].append(self._read(it))
        for name, rows in columns.items():
            has_details = zip(*rows, strict=True)
            first = tuple(next((value for value in column if value is not None), None) for column in has_details)
            self._know(name, first)

    def rises(self, changed: Iterable[tuple[Hashable, str, T, T]]) -> list[CounterRise]:
        """What rose, of objects (key, type, before, now), and by how much; added to the totals of the types."""
        risen = []
        for key, name, before, now in changed:
            last = self._held.get(key) or (self._read(before) if self._has_details(before) else None)
            new = self._read(now)
            if new == last or (last is None and not self._has_details(now)):
                continue
            self._know(name, new)
            if last is None:
                continue
            by, fell, silent = _compare(last, new)
            if silent:
                self._held[key] = tuple(was if value is None else value for was, value in zip(last, new, strict=True))
            elif self._held:
                self._held.pop(key, None)
            risen.append(CounterRise(key, name, by, fell))
        totals = defaultdict(list)
        for it in risen:
            totals[it.type].append(it.by)
        for name, rows in totals.items():
            added = map(sum, zip(*rows, strict=True))
            self._types[name] = [total + more for total, more in zip(self._types[name], added, strict=True)]
        return risen

    def count_hidden(
        self, risen: Iterable[CounterRise], before: Collection[Hashable], now: Collection[Hashable]
    ) -> None:
        """Count for the remainder what no series shows: the rise of objects that were not shown at both moments.

        Args:
            risen: what rose between the two moments.
            before: keys that were shown then.
            now: keys that are shown now.
        """
        for key, _, by, fell_from in risen:
            counted_in_remainder = self._hidden_rises.get(key)  # None: it has had no series so far
            if key in before and key in now:
                if fell_from and counted_in_remainder is not None:
                    # A series that shows less than the counter cannot show its restart by falling: it goes on.
                    counted_in_remainder[:] = [
                        less and less - fell for less, fell in zip(counted_in_remainder, fell_from, strict=True)
                    ]
                continue
            self._remainder = [remainder + more for remainder, more in zip(self._remainder, by, strict=True)]
            if counted_in_remainder is not None:
                counted_in_remainder[:] = [less + more for less, more in zip(counted_in_remainder, by, strict=True)]
                if fell_from:
                    counted_in_remainder[:] = [
                        less - fell for less, fell in zip(counted_in_remainder, fell_from, strict=True)
                    ]

    def shown(self, keys: Iterable[Hashable]) -> None:
        """From now on these objects' series must go on where they stop, should they be hidden and come back."""
        for key in keys:
            self._hidden_rises.setdefault(key, [0.0] * len(self.paths))

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Forget objects that are gone; what they rose by stays counted."""
        for key in keys:
            self._held.pop(key, None)
            self._hidden_rises.pop(key, None)

    def remainder(self) -> dict[str, float]:
        """Path -> what the remainder rose by, of counters that any object ever told."""
        nowhere = set(range(len(self.paths))).intersection(*self._unknown.values())
        return {path: self._remainder[index] for index, path in self._known(nowhere)} if self._unknown else {}

    def types(self) -> dict[str, dict[str, float]]:
        """Type -> path -> what all its objects rose by, of counters that any of them ever told."""
        return {
            name: {path: self._types[name][index] for index, path in self._known(unknown)}
            for name, unknown in self._unknown.items()
        }

    def counted_in_remainder(self, key: Hashable) -> dict[str, float] | None:
        """Path -> what the remainder counted of this object since it was first shown; None for nothing."""
        counted_in_remainder = self._hidden_rises.get(key)
        if counted_in_remainder is None or not any(counted_in_remainder):
            return None
        return dict(zip(self.paths, counted_in_remainder, strict=True))

    def _know(self, name: str, new: Numbers) -> None:
        """Remember which counters any object of the type ever told."""
        unknown = self._unknown[name]
        if unknown:
            self._unknown[name] = [index for index in unknown if new[index] is None]

    def _known(self, unknown: Collection[int]) -> list[tuple[int, str]]:
        return [(index, path) for index, path in enumerate(self.paths) if index not in unknown]


def _compare(last: Numbers, new: Numbers) -> tuple[tuple[float, ...], tuple[float, ...], bool]:
    """What rose, what a restart fell from, and whether something that was told is not told now."""
    by, fell, restarted, silent = [], [], False, False
    for was, value in zip(last, new, strict=True):
        if value is None:
            silent = silent or was is not None
            by.append(0.0)
            fell.append(0.0)
        elif was is None or value >= was:
            by.append(value - (was or 0))
            fell.append(0.0)
        else:
            restarted = True
            by.append(value)
            fell.append(was)
    return tuple(by), tuple(fell) if restarted else (), silent

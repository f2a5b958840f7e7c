"""Sums counters of many objects into one that never falls, from the increase between two readings of each object.

The first reading of an object has no increase. A restarted counter counts from zero. If a value is missing, the last
one is remembered until it is reported again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from exporter.exposition.cardinality.sums import path_reader

T = TypeVar("T")
Numbers = tuple[float | None, ...]


class CounterRise(NamedTuple):
    """Increase of one object's counters.

    Attributes:
        by: increase of each path.
        fell_from: value of each path before its counter restarted, 0 if it did not; empty if none did.
    """

    key: Hashable
    type: str
    by: tuple[float, ...]
    fell_from: tuple[float, ...]


class RemainderCounters(Generic[T]):
    """Counters of one kind of objects.

    Args:
        paths: paths of the counters.
        has_details: whether an object reports counters. If so, a missing counter is 0.
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
        """Add new objects, whose increases count from now on."""
        columns: defaultdict[str, list[Numbers]] = defaultdict(list)
        for it in objects:
            columns[type_of(it)].append(self._read(it))
        for name, rows in columns.items():
            has_details = zip(*rows, strict=True)
            first = tuple(next((value for value in column if value is not None), None) for column in has_details)
            self._know(name, first)

    def rises(self, changed: Iterable[tuple[Hashable, str, T, T]]) -> list[CounterRise]:
        """Return the increases of objects given as (key, type, before, now), and add them to the totals by type."""
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
        """Add increases to the remainder, except for objects that were shown at both moments.

        Args:
            risen: increases between the two moments.
            before: keys shown at the first moment.
            now: keys shown now.
        """
        for key, _, by, fell_from in risen:
            counted_in_remainder = self._hidden_rises.get(key)  # None if it has had no series so far
            if key in before and key in now:
                if fell_from and counted_in_remainder is not None:
                    # The series is lower than the counter, so it may not fall at the restart. It continues instead.
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
        """Remember these objects, so that their series continue without a jump if they are hidden and shown again."""
        for key in keys:
            self._hidden_rises.setdefault(key, [0.0] * len(self.paths))

    def forget(self, keys: Iterable[Hashable]) -> None:
        """Forget removed objects; their increase stays counted."""
        for key in keys:
            self._held.pop(key, None)
            self._hidden_rises.pop(key, None)

    def remainder(self) -> dict[str, float]:
        """Return the increase of the remainder by path, for counters that any object has ever reported."""
        nowhere = set(range(len(self.paths))).intersection(*self._unknown.values())
        return {path: self._remainder[index] for index, path in self._known(nowhere)} if self._unknown else {}

    def types(self) -> dict[str, dict[str, float]]:
        """Return the increase of all objects by type and path, for counters that any of them has ever reported."""
        return {
            name: {path: self._types[name][index] for index, path in self._known(unknown)}
            for name, unknown in self._unknown.items()
        }

    def counted_in_remainder(self, key: Hashable) -> dict[str, float] | None:
        """Return the part of each counter of an object that is already in the remainder; None if there is none."""
        counted_in_remainder = self._hidden_rises.get(key)
        if counted_in_remainder is None or not any(counted_in_remainder):
            return None
        return dict(zip(self.paths, counted_in_remainder, strict=True))

    def _know(self, name: str, new: Numbers) -> None:
        """Record which counters objects of a type report."""
        unknown = self._unknown[name]
        if unknown:
            self._unknown[name] = [index for index in unknown if new[index] is None]

    def _known(self, unknown: Collection[int]) -> list[tuple[int, str]]:
        return [(index, path) for index, path in enumerate(self.paths) if index not in unknown]


def _compare(last: Numbers, new: Numbers) -> tuple[tuple[float, ...], tuple[float, ...], bool]:
    """Return increases, values before a restart, and whether a previously reported value is now missing."""
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

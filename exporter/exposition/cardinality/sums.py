"""Sums of gauges over groups of objects, kept up by what comes and goes rather than added up anew."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Group = tuple[str, ...]


def reader(paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads several paths off an object at once."""
    if len(paths) > 1:
        return attrgetter(*paths)
    getters = [attrgetter(path) for path in paths]
    return lambda it: tuple(get(it) for get in getters)


class Sum:
    """Some objects added up.

    Attributes:
        number: how many.
        untold: how many of them have never told more than their totals.
        values: a sum a path.
        lacks: how many lack the path.
    """

    __slots__ = ("lacks", "number", "untold", "values")

    def __init__(self, width: int) -> None:
        self.number, self.untold = 0, 0
        self.values, self.lacks = [0.0] * width, [0] * width

    def add(self, other: "Sum", sign: int = 1) -> None:
        """Add, or with -1 take away, another sum."""
        self.number += sign * other.number
        self.untold += sign * other.untold
        for index, (value, lack) in enumerate(zip(other.values, other.lacks, strict=True)):
            self.values[index] += sign * value
            self.lacks[index] += sign * lack

    def means_nothing(self, index: int) -> bool:
        """Whether objects such as these have no such quantity: all told what they have, and none had it."""
        return self.number > 0 and self.untold == 0 and self.lacks[index] == self.number


class Sums(Generic[T]):
    """Sums by group.

    Args:
        paths: what is added up.
        group: the group of an object: its type, then its virtual host, then more that is only counted; objects of one
            type have the same quantities.
        told: whether an object told more than its totals.

    Attributes:
        types: by type.
        pairs: by type and virtual host.
        numbers: objects by group.
    """

    def __init__(self, paths: Sequence[str], group: Callable[[T], Group], told: Callable[[T], bool]) -> None:
        self.paths, self._group, self._told = tuple(paths), group, told
        self._read = reader(paths)
        self._index = {path: index for index, path in enumerate(self.paths)}
        self.types: dict[str, Sum] = {}
        self.pairs: dict[Group, Sum] = {}
        self.numbers: Counter[Group] = Counter()

    def add(self, objects: Iterable[T], sign: int = 1) -> None:
        """Add, or with -1 take away, objects."""
        grouped: defaultdict[Group, list[T]] = defaultdict(list)
        for it in objects:
            grouped[self._group(it)].append(it)
        for group, members in grouped.items():
            made = self._of(members)
            self._add(self.types, group[0], made, sign)
            self._add(self.pairs, group[:2], made, sign)
            self.numbers[group] += sign * len(members)
            if self.numbers[group] == 0:
                del self.numbers[group]

    def without(self, objects: Iterable[T]) -> dict[str, Sum]:
        """The sums by type of all but these."""
        part = Sums(self.paths, self._group, self._told)
        part.add(objects)
        rest: dict[str, Sum] = {}
        for name, one in self.types.items():
            rest[name] = Sum(len(self.paths))
            rest[name].add(one)
            if name in part.types:
                rest[name].add(part.types[name], -1)
        return rest

    def told(self, part: Mapping[str, Sum], paths: Sequence[str] | None = None) -> dict[str, float]:
        """Path -> sum over types; withheld where an object lacks what its type has, or where no type has it.

        Args:
            part: sums by type, of some or all of the objects.
            paths: which ones; all of them where it is not said.
        """
        seen: dict[str, float] = {}
        for path in self.paths if paths is None else paths:
            index = self._index[path]
            having = [one for name, one in part.items() if not self.types[name].means_nothing(index)]
            if having and not any(one.lacks[index] for one in having):
                seen[path] = sum(one.values[index] for one in having)
        return seen

    def _add(self, sums: dict[Any, Sum], key: Any, made: Sum, sign: int) -> None:
        total = sums.get(key)
        if total is None:
            total = sums[key] = Sum(len(self.paths))
        total.add(made, sign)
        if total.number == 0:
            del sums[key]

    def _of(self, members: Sequence[T]) -> Sum:
        made = Sum(len(self.paths))
        made.number = len(members)
        made.untold = made.number - sum(map(self._told, members))
        columns: Iterable[tuple[Any, ...]] = zip(*map(self._read, members), strict=True)
        for index, column in enumerate(columns):
            made.values[index] = sum(filter(None, column))
            made.lacks[index] = column.count(None)
        return made

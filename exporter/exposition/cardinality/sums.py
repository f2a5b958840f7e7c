"""Incremental sums of gauges over groups of objects."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

from ackscope.snapshot import Queue
from exporter.exposition.cardinality.selection import OTHER, QueueTally, QueueTotals

T = TypeVar("T")
Group = tuple[str, ...]


def path_reader(paths: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads several attribute paths at once."""
    if len(paths) > 1:
        return attrgetter(*paths)
    getters = [attrgetter(path) for path in paths]
    return lambda it: tuple(get(it) for get in getters)


class GroupSum:
    """Sums over a set of objects.

    Attributes:
        number: number of objects.
        without_details: number of objects that never reported more than totals.
        values: sum of each path.
        missing: number of objects that lack each path.
    """

    __slots__ = ("missing", "number", "values", "without_details")

    def __init__(self, width: int) -> None:
        self.number, self.without_details = 0, 0
        self.values, self.missing = [0.0] * width, [0] * width

    def add(self, other: "GroupSum", sign: int = 1) -> None:
        """Add another sum, or subtract it with -1."""
        self.number += sign * other.number
        self.without_details += sign * other.without_details
        for index, (value, lack) in enumerate(zip(other.values, other.missing, strict=True)):
            self.values[index] += sign * value
            self.missing[index] += sign * lack

    def not_applicable(self, index: int) -> bool:
        """Whether these objects never have the value: all of them reported details, and none had the value."""
        return self.number > 0 and self.without_details == 0 and self.missing[index] == self.number


class GroupSums(Generic[T]):
    """Sums by group.

    Args:
        paths: paths to sum.
        group: returns the group of an object: type, virtual host, then parts that are only counted. Objects of one type
            have the same paths.
        has_details: whether an object reports more than totals.

    Attributes:
        types: sum by type.
        pairs: sum by type and virtual host.
        numbers: number of objects by group.
    """

    def __init__(self, paths: Sequence[str], group: Callable[[T], Group], totals: Callable[[T], bool]) -> None:
        self.paths, self._group, self._has_details = tuple(paths), group, totals
        self._read = path_reader(paths)
        self._index = {path: index for index, path in enumerate(self.paths)}
        self.types: dict[str, GroupSum] = {}
        self.pairs: dict[Group, GroupSum] = {}
        self.numbers: Counter[Group] = Counter()

    def add(self, objects: Iterable[T], sign: int = 1) -> None:
        """Add objects, or subtract them with -1."""
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

    def without(self, objects: Iterable[T]) -> dict[str, GroupSum]:
        """Return the sums by type over all objects except these."""
        part = GroupSums(self.paths, self._group, self._has_details)
        part.add(objects)
        rest: dict[str, GroupSum] = {}
        for name, one in self.types.items():
            rest[name] = GroupSum(len(self.paths))
            rest[name].add(one)
            if name in part.types:
                rest[name].add(part.types[name], -1)
        return rest

    def totals(self, part: Mapping[str, GroupSum], paths: Sequence[str] | None = None) -> dict[str, float]:
        """Return the sum over all types for each path.

        A path is left out if an object lacks a value that its type has, or if no type has it.

        Args:
            part: sums by type, of some or all objects.
            paths: paths to sum; None for all.
        """
        seen: dict[str, float] = {}
        for path in self.paths if paths is None else paths:
            index = self._index[path]
            having = [one for name, one in part.items() if not self.types[name].not_applicable(index)]
            if having and not any(one.missing[index] for one in having):
                seen[path] = sum(one.values[index] for one in having)
        return seen

    def _add(self, sums: dict[Any, GroupSum], key: Any, made: GroupSum, sign: int) -> None:
        total = sums.get(key)
        if total is None:
            total = sums[key] = GroupSum(len(self.paths))
        total.add(made, sign)
        if total.number == 0:
            del sums[key]

    def _of(self, members: Sequence[T]) -> GroupSum:
        made = GroupSum(len(self.paths))
        made.number = len(members)
        made.without_details = made.number - sum(map(self._has_details, members))
        columns: Iterable[tuple[Any, ...]] = zip(*map(self._read, members), strict=True)
        for index, column in enumerate(columns):
            made.values[index] = sum(filter(None, column))
            made.missing[index] = column.count(None)
        return made


OF_A_VHOST = ("messages", "messages_ready", "messages_unacked", "consumers", "memory", "message_bytes")
"""Paths that are summed for each virtual host. They are few, because there may be thousands of hosts."""


def queue_totals(sums: GroupSums[Queue], counts: Mapping[str, Mapping[str, float]], max_vhosts: int) -> QueueTotals:
    """Return the totals over all queues.

    Args:
        sums: sums of groups (type, virtual host, state, node, replication).
        counts: type -> path of a counter -> increase of its queues.
        max_vhosts: maximum number of virtual hosts with their own totals.
    """
    states: Counter[tuple[str, str]] = Counter()
    nodes: Counter[tuple[str, str]] = Counter()
    replicas: Counter[tuple[str, str]] = Counter()
    for (name, _, state, node, replication), number in sums.numbers.items():
        states[name, state] += number
        nodes[name, node] += number
        if replication:
            replicas[name, replication] += number
    types = sorted(sums.types.items())
    return QueueTotals(
        states=dict(sorted(states.items())),
        types={name: QueueTally(number=one.number, sums=sums.totals({name: one})) for name, one in types},
        vhosts={
            vhost: QueueTally(number=sum(one.number for one in part.values()), sums=sums.totals(part, OF_A_VHOST))
            for vhost, part in _vhosts(sums, max_vhosts).items()
        },
        places=dict(sorted(nodes.items())),
        replicas=dict(sorted(replicas.items())),
        counts=counts,
    )


def _vhosts(sums: GroupSums[Queue], most: int) -> Mapping[str, Mapping[str, GroupSum]]:
    """Return the sums by virtual host and type. Virtual hosts with fewest messages are merged."""
    vhosts: dict[str, dict[str, GroupSum]] = {}
    for (name, vhost), one in sums.pairs.items():
        vhosts.setdefault(vhost, {})[name] = one
    if len(vhosts) <= most:
        return vhosts
    messages = sums.paths.index("messages")
    large = heapq.nlargest(most, vhosts, key=lambda vhost: sum(one.values[messages] for one in vhosts[vhost].values()))
    shown, remainder = set(large), dict[str, GroupSum]()
    for vhost, part in vhosts.items():
        for name, one in part.items() if vhost not in shown else ():
            remainder.setdefault(name, GroupSum(len(sums.paths))).add(one)
    return {**{vhost: vhosts[vhost] for vhost in large}, OTHER: remainder}

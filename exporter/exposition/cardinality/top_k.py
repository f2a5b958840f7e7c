"""Selects the objects with their own series, and sums up the remainder.

The time is proportional to the number of changed objects and to the limits. An unchanged object costs one comparison of
ids.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Generic, TypeVar

from ackscope.snapshot import Queue, Snapshot
from exporter.exposition.cardinality.changes import ObjectChanges, ObjectIndex
from exporter.exposition.cardinality.counters import CounterRise, RemainderCounters
from exporter.exposition.cardinality.kinds import (
    CHANNELS,
    CONNECTIONS,
    CONSUMERS,
    EXCHANGES,
    FEATURES,
    LIMITS,
    LINKS,
    POLICIES,
    QUEUES,
    VHOSTS,
    ObjectKind,
)
from exporter.exposition.cardinality.ranking import STAY, Candidates, assign_places, ranking
from exporter.exposition.cardinality.selection import (
    CardinalityLimits,
    ClusterSelection,
    QueueTotals,
    SelectedObjects,
    Selection,
)
from exporter.exposition.cardinality.sums import GroupSums, queue_totals
from exporter.exposition.settings import MetricsSettings

T = TypeVar("T")

_UNLIMITED = CardinalityLimits(*[1 << 60] * len(CardinalityLimits._fields))


class TopK:
    """Selects the top objects once per generation. Remembers what was shown and counted. Not thread-safe.

    Args:
        settings: limits and patterns.
    """

    def __init__(self, settings: MetricsSettings) -> None:
        self._clusters: dict[str, _ClusterState] = {}
        self.apply(settings)

    def apply(self, settings: MetricsSettings) -> None:
        """Apply new settings from the next selection on; counters continue."""
        self._settings = settings

    def select(self, snapshots: Sequence[Snapshot]) -> Selection:
        """Select from these snapshots. The state of other clusters is dropped."""
        known = self._clusters
        self._clusters = {it.cluster: known.get(it.cluster) or _ClusterState() for it in snapshots}
        limits, patterns = self._settings.limits, _Patterns(self._settings)
        made = {it.cluster: self._clusters[it.cluster].select(it, limits, patterns) for it in snapshots}
        return Selection(clusters=made, limits=limits)


def select_all(snapshots: Sequence[Snapshot]) -> Selection:
    """Select all objects of a single read. Increases of counters are unknown, which is different from 0."""
    nothing = _Patterns(MetricsSettings())
    made = {it.cluster: _ClusterState().select(it, _UNLIMITED, nothing) for it in snapshots}
    uncounted = {name: replace(one, totals=replace(one.totals, counts={})) for name, one in made.items()}
    return Selection(clusters=uncounted, limits=_UNLIMITED)


class _Patterns:
    def __init__(self, settings: MetricsSettings) -> None:
        self.included = re.compile(settings.include_queues) if settings.include_queues else None
        self.excluded = re.compile(settings.exclude_queues) if settings.exclude_queues else None
        self.id = (settings.include_queues, settings.exclude_queues)


class _ClusterState:
    """State of one cluster."""

    def __init__(self) -> None:
        self._queues, self._channels, self._consumers = _KindState(QUEUES), _KindState(CHANNELS), _KindState(CONSUMERS)
        self._connections, self._exchanges = _KindState(CONNECTIONS), _KindState(EXCHANGES)
        self._links, self._policies, self._limits = _KindState(LINKS), _KindState(POLICIES), _KindState(LIMITS)
        self._features, self._vhosts = _KindState(FEATURES), _KindState(VHOSTS)
        self._totals: tuple[SelectedObjects[Queue], int, QueueTotals] | None = None

    def select(self, snapshot: Snapshot, limits: CardinalityLimits, patterns: _Patterns) -> ClusterSelection:
        queues = self._queues.select(snapshot.queues.value or (), snapshot, limits.queues, patterns)
        return ClusterSelection(
            queues=queues,
            channels=self._channels.select(snapshot.channels.value or (), snapshot, limits.channels, patterns),
            consumers=self._consumers.select(snapshot.consumers.value or (), snapshot, limits.consumers, patterns),
            connections=self._connections.select(
                snapshot.connections.value or (), snapshot, limits.connections, patterns
            ),
            exchanges=self._exchanges.select(snapshot.exchanges.value or (), snapshot, limits.exchanges, patterns),
            links=self._links.select(snapshot.links.value or (), snapshot, limits.links, patterns),
            policies=self._policies.select(snapshot.policies.value or (), snapshot, limits.policies, patterns),
            limits=self._limits.select(snapshot.limits.value or (), snapshot, limits.limits, patterns),
            features=self._features.select(snapshot.features.value or (), snapshot, limits.features, patterns),
            vhosts=self._vhosts.select(snapshot.vhosts.value or (), snapshot, limits.vhosts, patterns),
            totals=self._add_up(queues, limits.vhosts),
        )

    def _add_up(self, queues: SelectedObjects[Queue], max_vhosts: int) -> QueueTotals:
        if self._totals is None or self._totals[0] is not queues or self._totals[1] != max_vhosts:
            made = queue_totals(self._queues.sums, self._queues.counts.types(), max_vhosts)
            self._totals = (queues, max_vhosts, made)
        return self._totals[2]


class _KindState(Generic[T]):
    """State of one kind of objects."""

    def __init__(self, kind: ObjectKind[T]) -> None:
        self._kind, self._index = kind, ObjectIndex(kind.key)
        self.sums = GroupSums(kind.gauges, kind.group, kind.has_details)
        self.counts = RemainderCounters(kind.counters, kind.has_details)
        self._holders: dict[Hashable, float] = {}
        self._included: set[Hashable] = set()
        self._excluded: set[Hashable] = set()
        self._patterns: tuple[str, str] | None = None
        self._ever_omitted = False
        self._last: tuple[Sequence[T], int, tuple[str, str], SelectedObjects[T]] | None = None

    def select(self, listed: Sequence[T], snapshot: Snapshot, cap: int, patterns: _Patterns) -> SelectedObjects[T]:
        """Return the selection. Cached while the list is the same object: most generations read other lists."""
        last = self._last
        if last is None or last[0] is not listed or last[1:3] != (cap, patterns.id):
            last = self._last = (listed, cap, patterns.id, self._select_new(listed, snapshot, cap, patterns))
        return last[3]

    def _select_new(self, listed: Sequence[T], snapshot: Snapshot, cap: int, patterns: _Patterns) -> SelectedObjects[T]:
        changes = self._index.update(listed)
        self._match(changes, patterns)
        self._add_up(changes)
        risen = self._rises(changes)
        now = self._places(changes, risen, snapshot, cap)
        self.counts.count_hidden(risen, self._holders, now)
        self.counts.shown(key for key in now if key not in self._holders)
        self._holders = now
        return self._selected()

    def _match(self, changes: ObjectChanges[T], patterns: _Patterns) -> None:
        if self._kind.name is None:
            return
        fresh: Iterable[T] = changes.added
        if patterns.id != self._patterns:
            self._patterns = patterns.id
            self._included, self._excluded = set(), set()
            fresh = self._index.objects.values()
        for keys, pattern in ((self._included, patterns.included), (self._excluded, patterns.excluded)):
            keys.difference_update(map(self._kind.key, changes.removed))
            if pattern is not None:
                keys.update(self._kind.key(it) for it in fresh if pattern.search(self._kind.name(it)))

    def _add_up(self, changes: ObjectChanges[T]) -> None:
        self.sums.add([*changes.removed, *(before for before, _ in changes.changed)], -1)
        self.sums.add([*changes.added, *(now for _, now in changes.changed)])

    def _rises(self, changes: ObjectChanges[T]) -> list[CounterRise]:
        key, group = self._kind.key, self._kind.group
        self.counts.forget(map(key, changes.removed))
        self.counts.add(changes.added, lambda it: group(it)[0])
        return self.counts.rises((key(now), group(now)[0], before, now) for before, now in changes.changed)

    def _places(
        self, changes: ObjectChanges[T], risen: Sequence[CounterRise], snapshot: Snapshot, cap: int
    ) -> dict[Hashable, float]:
        objects, at = self._index.objects, snapshot.taken.mono
        if len(objects) - len(self._excluded) <= cap:
            until = at + STAY
            return {key: until for key in objects if key not in self._excluded}
        if cap == 0:
            return {}
        rankings = [
            ranking(((weight(it) or 0, key) for key, it in objects.items()), cap)
            for weight in self._kind.weights(snapshot)
        ]
        for paths in self._kind.rising:
            indices = [self._kind.counters.index(path) for path in paths]
            rankings.append(ranking(((sum(it.by[i] for i in indices), it.key) for it in risen), cap))
        if self._kind.change_gauge:
            size, key = attrgetter(self._kind.change_gauge), self._kind.key
            swings = ((abs((size(after) or 0) - (size(before) or 0)), key(after)) for before, after in changes.changed)
            rankings.append(ranking(swings, cap))
        candidates = Candidates(keys=objects, included=self._included, excluded=self._excluded, rankings=rankings)
        return assign_places(candidates, self._holders, cap, at)

    def _selected(self) -> SelectedObjects[T]:
        objects = self._index.objects
        shown = [objects[key] for key in self._holders]
        omitted = len(objects) - len(shown)
        self._ever_omitted = self._ever_omitted or omitted > 0
        counted_in_remainder: dict[Hashable, Mapping[str, float]] = {}
        for key in self._holders:
            less = self.counts.counted_in_remainder(key)
            if less is not None:
                counted_in_remainder[key] = less
        remainder: dict[str, float] = {}
        if self._ever_omitted:
            remainder = {**self.sums.totals(self.sums.without(shown)), **self.counts.remainder()}
        return SelectedObjects(
            shown=shown, omitted=omitted, remainder=remainder, counted_in_remainder=counted_in_remainder
        )

"""Which objects get series of their own, and what all the others add up to.

Time grows with what changed between two generations, and with the caps; of what did not change, only ids are compared.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Generic, TypeVar

from ackscope.snapshot import Queue, Snapshot
from exporter.exposition.cardinality.changes import Changes, Ledger
from exporter.exposition.cardinality.counters import Counts, Rise
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
    Kind,
)
from exporter.exposition.cardinality.ranking import STAY, Candidates, places, ranking
from exporter.exposition.cardinality.sums import Sums
from exporter.exposition.cardinality.totals import totals
from exporter.exposition.collectors.contract import Chosen, ClusterSelection, Limits, Selection, Totals
from exporter.exposition.settings import MetricsSettings

T = TypeVar("T")

_UNLIMITED = Limits(*[1 << 60] * len(Limits._fields))


class Chooser:
    """Chooses, once a generation; remembers who was shown and what was counted. Not for several threads at once.

    Args:
        settings: caps and patterns.
    """

    def __init__(self, settings: MetricsSettings) -> None:
        self._clusters: dict[str, _Cluster] = {}
        self.apply(settings)

    def apply(self, settings: MetricsSettings) -> None:
        """Go by these settings from the next choice on; what was counted stays."""
        self._settings = settings

    def choose(self, snapshots: Sequence[Snapshot]) -> Selection:
        """What to show of these snapshots; clusters that are not among them are forgotten."""
        known = self._clusters
        self._clusters = {it.cluster: known.get(it.cluster) or _Cluster() for it in snapshots}
        limits, patterns = self._settings.limits, _Patterns(self._settings)
        made = {it.cluster: self._clusters[it.cluster].choose(it, limits, patterns) for it in snapshots}
        return Selection(clusters=made, limits=limits)


def everything(snapshots: Sequence[Snapshot]) -> Selection:
    """All objects, for one look: nothing is left out, and of what rose nothing is known (which is not zero)."""
    nothing = _Patterns(MetricsSettings())
    made = {it.cluster: _Cluster().choose(it, _UNLIMITED, nothing) for it in snapshots}
    looked = {name: replace(one, totals=replace(one.totals, counts={})) for name, one in made.items()}
    return Selection(clusters=looked, limits=_UNLIMITED)


class _Patterns:
    def __init__(self, settings: MetricsSettings) -> None:
        self.first = re.compile(settings.include_queues) if settings.include_queues else None
        self.never = re.compile(settings.exclude_queues) if settings.exclude_queues else None
        self.id = (settings.include_queues, settings.exclude_queues)


class _Cluster:
    """The memory of one cluster."""

    def __init__(self) -> None:
        self._queues, self._channels, self._consumers = _One(QUEUES), _One(CHANNELS), _One(CONSUMERS)
        self._connections, self._exchanges = _One(CONNECTIONS), _One(EXCHANGES)
        self._links, self._policies, self._limits = _One(LINKS), _One(POLICIES), _One(LIMITS)
        self._features, self._vhosts = _One(FEATURES), _One(VHOSTS)
        self._totals: tuple[Chosen[Queue], int, Totals] | None = None

    def choose(self, snapshot: Snapshot, limits: Limits, patterns: _Patterns) -> ClusterSelection:
        queues = self._queues.choose(snapshot.queues.value or (), snapshot, limits.queues, patterns)
        return ClusterSelection(
            queues=queues,
            channels=self._channels.choose(snapshot.channels.value or (), snapshot, limits.channels, patterns),
            consumers=self._consumers.choose(snapshot.consumers.value or (), snapshot, limits.consumers, patterns),
            connections=self._connections.choose(
                snapshot.connections.value or (), snapshot, limits.connections, patterns
            ),
            exchanges=self._exchanges.choose(snapshot.exchanges.value or (), snapshot, limits.exchanges, patterns),
            links=self._links.choose(snapshot.links.value or (), snapshot, limits.links, patterns),
            policies=self._policies.choose(snapshot.policies.value or (), snapshot, limits.policies, patterns),
            limits=self._limits.choose(snapshot.limits.value or (), snapshot, limits.limits, patterns),
            features=self._features.choose(snapshot.features.value or (), snapshot, limits.features, patterns),
            vhosts=self._vhosts.choose(snapshot.vhosts.value or (), snapshot, limits.vhosts, patterns),
            totals=self._add_up(queues, limits.vhosts),
        )

    def _add_up(self, queues: Chosen[Queue], max_vhosts: int) -> Totals:
        if self._totals is None or self._totals[0] is not queues or self._totals[1] != max_vhosts:
            made = totals(self._queues.sums, self._queues.counts.types(), max_vhosts)
            self._totals = (queues, max_vhosts, made)
        return self._totals[2]


class _One(Generic[T]):
    """The memory of one kind of objects."""

    def __init__(self, kind: Kind[T]) -> None:
        self._kind, self._ledger = kind, Ledger(kind.key)
        self.sums = Sums(kind.gauges, kind.group, kind.told)
        self.counts = Counts(kind.counters, kind.told)
        self._held: dict[Hashable, float] = {}
        self._first: set[Hashable] = set()
        self._never: set[Hashable] = set()
        self._patterns: tuple[str, str] | None = None
        self._any_left_out = False
        self._last: tuple[Sequence[T], int, tuple[str, str], Chosen[T]] | None = None

    def choose(self, listed: Sequence[T], snapshot: Snapshot, cap: int, patterns: _Patterns) -> Chosen[T]:
        """What to show; as before while the list is the same one: most generations read another family only."""
        last = self._last
        if last is None or last[0] is not listed or last[1:3] != (cap, patterns.id):
            last = self._last = (listed, cap, patterns.id, self._choose(listed, snapshot, cap, patterns))
        return last[3]

    def _choose(self, listed: Sequence[T], snapshot: Snapshot, cap: int, patterns: _Patterns) -> Chosen[T]:
        changes = self._ledger.take(listed)
        self._match(changes, patterns)
        self._add_up(changes)
        risen = self._rises(changes)
        now = self._places(changes, risen, snapshot, cap)
        self.counts.settle(risen, self._held, now)
        self.counts.shown(key for key in now if key not in self._held)
        self._held = now
        return self._chosen()

    def _match(self, changes: Changes[T], patterns: _Patterns) -> None:
        if self._kind.name is None:
            return
        fresh: Iterable[T] = changes.came
        if patterns.id != self._patterns:
            self._patterns = patterns.id
            self._first, self._never = set(), set()
            fresh = self._ledger.objects.values()
        for keys, pattern in ((self._first, patterns.first), (self._never, patterns.never)):
            keys.difference_update(map(self._kind.key, changes.gone))
            if pattern is not None:
                keys.update(self._kind.key(it) for it in fresh if pattern.search(self._kind.name(it)))

    def _add_up(self, changes: Changes[T]) -> None:
        self.sums.add([*changes.gone, *(before for before, _ in changes.changed)], -1)
        self.sums.add([*changes.came, *(now for _, now in changes.changed)])

    def _rises(self, changes: Changes[T]) -> list[Rise]:
        key, group = self._kind.key, self._kind.group
        self.counts.forget(map(key, changes.gone))
        self.counts.came(changes.came, lambda it: group(it)[0])
        return self.counts.rises((key(now), group(now)[0], before, now) for before, now in changes.changed)

    def _places(
        self, changes: Changes[T], risen: Sequence[Rise], snapshot: Snapshot, cap: int
    ) -> dict[Hashable, float]:
        objects, at = self._ledger.objects, snapshot.taken.mono
        if len(objects) - len(self._never) <= cap:
            until = at + STAY
            return {key: until for key in objects if key not in self._never}
        if cap == 0:
            return {}
        rankings = [
            ranking(((weight(it) or 0, key) for key, it in objects.items()), cap)
            for weight in self._kind.weights(snapshot)
        ]
        for paths in self._kind.moving:
            indices = [self._kind.counters.index(path) for path in paths]
            rankings.append(ranking(((sum(it.by[i] for i in indices), it.key) for it in risen), cap))
        if self._kind.swing:
            size, key = attrgetter(self._kind.swing), self._kind.key
            swings = ((abs((size(after) or 0) - (size(before) or 0)), key(after)) for before, after in changes.changed)
            rankings.append(ranking(swings, cap))
        candidates = Candidates(keys=objects, first=self._first, never=self._never, rankings=rankings)
        return places(candidates, self._held, cap, at)

    def _chosen(self) -> Chosen[T]:
        objects = self._ledger.objects
        shown = [objects[key] for key in self._held]
        left_out = len(objects) - len(shown)
        self._any_left_out = self._any_left_out or left_out > 0
        missed: dict[Hashable, Mapping[str, float]] = {}
        for key in self._held:
            less = self.counts.missed(key)
            if less is not None:
                missed[key] = less
        rest: dict[str, float] = {}
        if self._any_left_out:
            rest = {**self.sums.told(self.sums.without(shown)), **self.counts.rest()}
        return Chosen(shown=shown, left_out=left_out, rest=rest, missed=missed)

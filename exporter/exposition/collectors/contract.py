"""What a collector is: its metrics as data, and one pure function from snapshots to families.

Which objects get series of their own is not the collector's decision: a `Selection` tells it, made once for all
collectors by `Chooser` in `exporter.exposition.cardinality`. What is not shown is in the remainder, one series a metric
with the object's name `OTHER`, so that a sum over all series of a metric is the sum over all objects.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from prometheus_client.core import Metric

from ackscope.snapshot import Channel, Connection, Consumer, Queue, Snapshot
from ackscope.topology import Exchange, Feature, Limit, Link, Policy, VHost
from exporter.exposition.specs import Spec, Value

T = TypeVar("T")

OTHER = "(other)"
"""The name of the remainder, where an object's name would be; the other labels of the object are empty."""


class Limits(NamedTuple):
    """How many objects of one cluster get series of their own."""

    queues: int = 5000
    channels: int = 1000
    consumers: int = 1000
    connections: int = 1000
    exchanges: int = 1000
    findings: int = 500
    vhosts: int = 1000
    links: int = 1000
    policies: int = 1000
    limits: int = 1000
    features: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Generic[T]):
    """The objects of one kind of one cluster that get series of their own, and the remainder.

    Quantities are named by their path in the object, as `messages` or `stats.publish`.

    Attributes:
        shown: in a fixed order, each key once.
        left_out: how many are not shown.
        rest: path -> value over all that are not shown, of the paths that can be added up. Gauges are sums, absent
            where one of them lacks the value; counters are what they rose by while not shown, since the exporter
            started, and never fall.
        missed: key of a shown object -> path -> how much of its counter `rest` has counted already.
    """

    shown: Sequence[T] = ()
    left_out: int = 0
    rest: Mapping[str, float] = field(default_factory=dict)
    missed: Mapping[Hashable, Mapping[str, float]] = field(default_factory=dict)

    def count(self, shown: T, key: Hashable, path: str) -> Value:
        """A counter of a shown object: its own, without what the remainder has counted already."""
        value: Value = attrgetter(path)(shown)
        less = self.missed.get(key)
        return value if less is None or value is None else value - less.get(path, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """A number of objects and their sums.

    Attributes:
        number: how many objects.
        sums: path of a gauge -> sum; absent where one of them lacks it.
    """

    number: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All queues of a cluster, shown or not, added up.

    Attributes:
        states: (type, state) -> number of queues.
        types: type -> tally.
        vhosts: virtual host -> tally; as many as `Limits.vhosts`, those with most messages, the rest under `OTHER`.
        places: (type, node) -> number of queues that live or have their leader there; "" is no node.
        replicas: (type, whole | partial | minority | leaderless) -> number of replicated queues.
        counts: type -> path of a counter -> what it rose by since the exporter started, as far as it was read.
    """

    states: Mapping[tuple[str, str], int] = field(default_factory=dict)
    types: Mapping[str, Tally] = field(default_factory=dict)
    vhosts: Mapping[str, Tally] = field(default_factory=dict)
    places: Mapping[tuple[str, str], int] = field(default_factory=dict)
    replicas: Mapping[tuple[str, str], int] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSelection:
    """What is shown of one cluster. A kind that was never read is empty here, as in the snapshot.

    What the caps leave out of links, policies, limits, features and virtual hosts is in no remainder.
    """

    queues: Chosen[Queue] = field(default_factory=Chosen)
    channels: Chosen[Channel] = field(default_factory=Chosen)
    consumers: Chosen[Consumer] = field(default_factory=Chosen)
    connections: Chosen[Connection] = field(default_factory=Chosen)
    exchanges: Chosen[Exchange] = field(default_factory=Chosen)
    links: Chosen[Link] = field(default_factory=Chosen)
    policies: Chosen[Policy] = field(default_factory=Chosen)
    limits: Chosen[Limit] = field(default_factory=Chosen)
    features: Chosen[Feature] = field(default_factory=Chosen)
    vhosts: Chosen[VHost] = field(default_factory=Chosen)
    totals: Totals = field(default_factory=Totals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is shown of every cluster, by its name."""

    clusters: Mapping[str, ClusterSelection] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def of(self, cluster: str) -> ClusterSelection:
        """The selection of one cluster; an empty one for a cluster that has none."""
        return self.clusters.get(cluster) or ClusterSelection()


class Collector(NamedTuple):
    """One collector.

    Attributes:
        specs: every metric that it may make.
        collect: all clusters' snapshots, and what to show of them, to families; no I/O, no clock, no memory.
    """

    specs: tuple[Spec, ...]
    collect: Callable[[Sequence[Snapshot], Selection], Iterable[Metric]]

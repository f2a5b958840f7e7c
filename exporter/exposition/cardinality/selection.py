"""What is shown of each cluster: the objects with series of their own, and the remainder of all others."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from ackscope.snapshot import Channel, Connection, Consumer, Queue
from ackscope.topology import Exchange, Feature, Limit, Link, Policy, VHost
from exporter.exposition.specs import Value

T = TypeVar("T")

OTHER = "(other)"
"""The name of the remainder, where an object's name would be; the other labels of the object are empty."""


class CardinalityLimits(NamedTuple):
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
class Selected(Generic[T]):
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
    omitted: int = 0
    remainder: Mapping[str, float] = field(default_factory=dict)
    counted_in_remainder: Mapping[Hashable, Mapping[str, float]] = field(default_factory=dict)

    def count(self, shown: T, key: Hashable, path: str) -> Value:
        """A counter of a shown object: its own, without what the remainder has counted already."""
        value: Value = attrgetter(path)(shown)
        less = self.counted_in_remainder.get(key)
        return value if less is None or value is None else value - less.get(path, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTally:
    """A number of objects and their sums.

    Attributes:
        number: how many objects.
        sums: path of a gauge -> sum; absent where one of them lacks it.
    """

    number: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTotals:
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
    types: Mapping[str, QueueTally] = field(default_factory=dict)
    vhosts: Mapping[str, QueueTally] = field(default_factory=dict)
    places: Mapping[tuple[str, str], int] = field(default_factory=dict)
    replicas: Mapping[tuple[str, str], int] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSelection:
    """What is shown of one cluster. A kind that was never read is empty here, as in the snapshot.

    What the caps leave out of links, policies, limits, features and virtual hosts is in no remainder.
    """

    queues: Selected[Queue] = field(default_factory=Selected)
    channels: Selected[Channel] = field(default_factory=Selected)
    consumers: Selected[Consumer] = field(default_factory=Selected)
    connections: Selected[Connection] = field(default_factory=Selected)
    exchanges: Selected[Exchange] = field(default_factory=Selected)
    links: Selected[Link] = field(default_factory=Selected)
    policies: Selected[Policy] = field(default_factory=Selected)
    limits: Selected[Limit] = field(default_factory=Selected)
    features: Selected[Feature] = field(default_factory=Selected)
    vhosts: Selected[VHost] = field(default_factory=Selected)
    totals: QueueTotals = field(default_factory=QueueTotals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is shown of every cluster, by its name."""

    clusters: Mapping[str, ClusterSelection] = field(default_factory=dict)
    limits: CardinalityLimits = field(default_factory=CardinalityLimits)

    def of(self, cluster: str) -> ClusterSelection:
        """The selection of one cluster; an empty one for a cluster that has none."""
        return self.clusters.get(cluster) or ClusterSelection()

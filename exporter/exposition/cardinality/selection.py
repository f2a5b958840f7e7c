"""Types of a selection: the objects of a cluster with their own series, and the remainder of all others."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Generic, NamedTuple, TypeVar

from ackscope.snapshot import Channel, Connection, Consumer, Queue
from ackscope.topology import Exchange, Feature, Limit, Link, Policy, VHost
from exporter.exposition.specs import Value

T = TypeVar("T")

OTHER = "(other)"
"""Label value of the remainder instead of the name of an object. Its other object labels are empty."""


class CardinalityLimits(NamedTuple):
    """Maximum number of objects of one cluster with their own series, by kind."""

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
class SelectedObjects(Generic[T]):
    """Objects of one kind in one cluster that get series of their own, and the remainder.

    Values are identified by their path in the object, such as `messages` or `stats.publish`.

    Attributes:
        shown: objects in a fixed order, each key once.
        omitted: number of objects that are not shown.
        remainder: path -> value over all omitted objects, for paths that can be summed. A gauge is a sum, missing if
            any object lacks the value. A counter is the increase since the exporter started, while an object was not
            shown; it never falls.
        counted_in_remainder: key of a shown object -> path -> part of its counter that `remainder` already contains.
    """

    shown: Sequence[T] = ()
    omitted: int = 0
    remainder: Mapping[str, float] = field(default_factory=dict)
    counted_in_remainder: Mapping[Hashable, Mapping[str, float]] = field(default_factory=dict)

    def count(self, shown: T, key: Hashable, path: str) -> Value:
        """Return a counter of a shown object, minus the part that the remainder already contains."""
        value: Value = attrgetter(path)(shown)
        less = self.counted_in_remainder.get(key)
        return value if less is None or value is None else value - less.get(path, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTally:
    """Number of queues and sums over them.

    Attributes:
        number: number of queues.
        sums: path of a gauge -> sum; missing if any queue lacks the value.
    """

    number: int = 0
    sums: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTotals:
    """Sums over all queues of a cluster, shown or not.

    Attributes:
        states: (type, state) -> number of queues.
        types: type -> tally of its queues.
        vhosts: virtual host -> tally, for the `CardinalityLimits.vhosts` hosts with most messages; the others are
            summed under `OTHER`.
        places: (type, node) -> number of queues located or led on the node; "" for no node.
        replicas: (type, whole | partial | minority | leaderless) -> number of replicated queues.
        counts: type -> path of a counter -> observed increase since the exporter started.
    """

    states: Mapping[tuple[str, str], int] = field(default_factory=dict)
    types: Mapping[str, QueueTally] = field(default_factory=dict)
    vhosts: Mapping[str, QueueTally] = field(default_factory=dict)
    places: Mapping[tuple[str, str], int] = field(default_factory=dict)
    replicas: Mapping[tuple[str, str], int] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSelection:
    """Selection of one cluster. A kind that was never read is empty.

    Links, policies, limits, features and virtual hosts have no remainder for objects beyond their limit.
    """

    queues: SelectedObjects[Queue] = field(default_factory=SelectedObjects)
    channels: SelectedObjects[Channel] = field(default_factory=SelectedObjects)
    consumers: SelectedObjects[Consumer] = field(default_factory=SelectedObjects)
    connections: SelectedObjects[Connection] = field(default_factory=SelectedObjects)
    exchanges: SelectedObjects[Exchange] = field(default_factory=SelectedObjects)
    links: SelectedObjects[Link] = field(default_factory=SelectedObjects)
    policies: SelectedObjects[Policy] = field(default_factory=SelectedObjects)
    limits: SelectedObjects[Limit] = field(default_factory=SelectedObjects)
    features: SelectedObjects[Feature] = field(default_factory=SelectedObjects)
    vhosts: SelectedObjects[VHost] = field(default_factory=SelectedObjects)
    totals: QueueTotals = field(default_factory=QueueTotals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selection by cluster name."""

    clusters: Mapping[str, ClusterSelection] = field(default_factory=dict)
    limits: CardinalityLimits = field(default_factory=CardinalityLimits)

    def of(self, cluster: str) -> ClusterSelection:
        """Return the selection of one cluster; empty if there is none."""
        return self.clusters.get(cluster) or ClusterSelection()

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
"""Name of the remainder in place of an object's name; its other object labels are empty."""


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
class SelectedObjects(Generic[T]):
    """Objects of one kind in one cluster that get series of their own, and the remainder.

    Values are identified by their path in the object, such as `messages` or `stats.publish`.

    Attributes:
        shown: objects in a fixed order, each key once.
        omitted: number of objects that are not shown.
        remainder: path -> value over all omitted objects, for paths that can be summed. A gauge is a sum, missing if
            any object lacks the value. A counter is the increase while not shown since the exporter started; it never
            falls.
        counted_in_remainder: key of a shown object -> path -> part of its counter that `remainder` already contains.
    """

    shown: Sequence[T] = ()
    omitted: int = 0
    remainder: Mapping[str, float] = field(default_factory=dict)
    counted_in_remainder: Mapping[Hashable, Mapping[str, float]] = field(default_factory=dict)

    def count(self, shown: T, key: Hashable, path: str) -> Value:
        """A counter of a shown object, minus what the remainder already contains."""
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
        types: type -> tally.
        vhosts: virtual host -> tally, for the `CardinalityLimits.vhosts` with most messages; the rest under `OTHER`.
        places: (type, node) -> number of queues located or led there; "" is no node.
        replicas: (type, whole | partial | minority | leaderless) -> number of replicated queues.
        counts: type -> path of a counter -> increase since the exporter started, as far as it was read.
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

    Links, policies, limits, features and virtual hosts beyond their limit are in no remainder.
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
        """Selection of one cluster; empty if there is none."""
        return self.clusters.get(cluster) or ClusterSelection()

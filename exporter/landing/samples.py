"""Converts the snapshots of one cluster to landing rows of new readings and changed objects."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult
from ackscope.snapshot import Channel, Consumer, Part, Queue, Snapshot
from ackscope.tables import (
    CHANNEL_SAMPLES,
    CONSUMER_SAMPLES,
    FINDING_EVENTS,
    NODE_SAMPLES,
    POLL_SAMPLES,
    QUEUE_SAMPLES,
    Table,
)
from exporter.landing.blocks import Block
from exporter.landing.changes import ChangeTracker
from exporter.landing.events import Findings, Polls
from exporter.landing.following import PriorityTracker
from exporter.landing.settings import LandingSettings
from exporter.landing.shapes import CHANNELS, CONSUMERS, NODES, QUEUES

CHANGES = (QUEUE_SAMPLES, CHANNEL_SAMPLES, CONSUMER_SAMPLES)
"""Tables in which a missing row means "unchanged"."""

_NODE_SECONDS = 15.0
_EARLY = 1.0
"""Tolerance in seconds for a reading that comes early."""


class SampleBatch(NamedTuple):
    """Rows to land, and the number of objects beyond the limit."""

    blocks: Sequence[Block]
    dropped: int = 0


class ClusterSamples:
    """Tracks what has been landed of one cluster. Not thread-safe.

    Args:
        cluster: cluster name.
        settings: limits of channels and consumers.
        own_prefixes: prefixes of the probes' queues, which are not landed.
    """

    def __init__(self, cluster: str, settings: LandingSettings, own_prefixes: Sequence[str]) -> None:
        self._cluster, self._settings, self._own = cluster, settings, tuple(own_prefixes)
        self._seen: dict[str, Instant] = {}
        self._reset: dict[Table, Callable[[], None]] = {
            QUEUE_SAMPLES: self._begin_queues,
            CHANNEL_SAMPLES: self._begin_channels,
            CONSUMER_SAMPLES: self._begin_consumers,
            NODE_SAMPLES: lambda: None,
            POLL_SAMPLES: self._begin_polls,
            FINDING_EVENTS: self._begin_findings,
        }
        for begin in self._reset.values():
            begin()

    def apply(self, settings: LandingSettings) -> None:
        """Apply new settings."""
        self._settings = settings

    def steps(
        self, snapshot: Snapshot, shared: Snapshot, verdict: DiagnosisResult | None, now: Instant
    ) -> Iterator[tuple[Table, Callable[[], SampleBatch]]]:
        """Yield each table with a function that makes its rows.

        Call each function once, and catch its exceptions, so that a defect costs the rows of one table only.

        `shared` has the content of `snapshot`, with objects of the previous snapshot where they are equal.
        """
        yield QUEUE_SAMPLES, lambda: self._queues_of(shared)
        yield CHANNEL_SAMPLES, lambda: self._channels_of(shared)
        yield CONSUMER_SAMPLES, lambda: self._consumers_of(shared)
        yield NODE_SAMPLES, lambda: self._nodes_of(shared)
        yield POLL_SAMPLES, lambda: SampleBatch(self._polls.take(snapshot, self._whole()))
        if verdict is not None:
            yield FINDING_EVENTS, lambda: SampleBatch(self._findings.take(verdict, now))

    def resend_all(self, *tables: Table) -> None:
        """Forget what was landed in some tables, because rows were lost. The next reading lands every object again."""
        for table in tables:
            self._reset[table]()

    def _whole(self) -> set[str]:
        followed = (
            ("queues", self._queues.whole),
            ("channels", self._channels.whole),
            ("consumers", self._consumers.whole),
        )
        return {family for family, whole in followed if whole}

    def _begin_queues(self) -> None:
        self._queues: ChangeTracker[Queue] = ChangeTracker(
            QUEUES, self._cluster, skip=lambda it: it.name.startswith(self._own)
        )

    def _begin_channels(self) -> None:
        self._channels: PriorityTracker[Channel] = PriorityTracker(CHANNELS, self._cluster, _channel_trouble)

    def _begin_consumers(self) -> None:
        self._consumers: PriorityTracker[Consumer] = PriorityTracker(
            CONSUMERS, self._cluster, _consumer_trouble, skip=lambda it: it.queue.startswith(self._own)
        )

    def _begin_polls(self) -> None:
        self._polls = Polls()

    def _begin_findings(self) -> None:
        self._findings = Findings()

    def _queues_of(self, snapshot: Snapshot) -> SampleBatch:
        at, part = self._new("queues", snapshot.queues), snapshot.queues
        return SampleBatch(self._queues.take(at, part.value or ()) if at else ())

    def _channels_of(self, snapshot: Snapshot) -> SampleBatch:
        at, part = self._new("channels", snapshot.channels), snapshot.channels
        return (
            SampleBatch(*self._channels.take(at, part.value or (), self._settings.max_channels))
            if at
            else SampleBatch(())
        )

    def _consumers_of(self, snapshot: Snapshot) -> SampleBatch:
        at, part = self._new("consumers", snapshot.consumers), snapshot.consumers
        return (
            SampleBatch(*self._consumers.take(at, part.value or (), self._settings.max_consumers))
            if at
            else SampleBatch(())
        )

    def _nodes_of(self, snapshot: Snapshot) -> SampleBatch:
        at, part = snapshot.nodes.at, snapshot.nodes
        before = self._seen.get("nodes")
        if at is None or not part.value or (before and at.since(before) < _NODE_SECONDS - _EARLY):
            return SampleBatch(())
        self._seen["nodes"] = at
        return SampleBatch([NODES.block(self._cluster, at, part.value)])

    def _new(self, family: str, part: Part[Any]) -> Instant | None:
        """Return when this reading was completed; None if it is not new."""
        if part.at is None or part.value is None or self._seen.get(family) == part.at:
            return None
        self._seen[family] = part.at
        return part.at


def _channel_trouble(channel: Channel) -> float:
    return (channel.messages_unacked or 0) + (channel.stats.redeliver or 0)


def _consumer_trouble(consumer: Consumer) -> float:
    return 1.0 if consumer.active is False else 0.0

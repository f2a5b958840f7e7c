"""Queues with a sign of redelivery, gathered from what their clients tell, until the queues themselves are read."""

from typing import TYPE_CHECKING

from ackscope.snapshot import Channel, Consumer, Part, Queue
from exporter.broker.queue_store import Key
from exporter.broker.queue_suspicion import redelivering

if TYPE_CHECKING:
    from ackscope.clock import Instant


class Signs:
    """What was seen from one reading of the queues to the next; not for several threads."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}
        self._channels_at: Instant | None = None
        self._queues_at: Instant | None = None
        self._named: frozenset[Key] = frozenset()

    def named(
        self,
        channels: Part[tuple[Channel, ...]],
        consumers: Part[tuple[Consumer, ...]],
        queues: Part[tuple[Queue, ...]],
    ) -> frozenset[Key]:
        """Those named since the queues were read last, by the latest readings of all three."""
        if queues.at != self._queues_at:
            self._queues_at, self._named = queues.at, frozenset()
        if channels.at != self._channels_at:
            self._channels_at = channels.at
            self._counters, named = redelivering(self._counters, channels.value or (), consumers.value or ())
            self._named |= named
        return self._named

"""Queues that probably redeliver, inferred from channels and consumers, which are read more often than queues."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ackscope.snapshot import Channel, Consumer, Part, Queue
from exporter.broker.endpoints.queues import QueueKey

if TYPE_CHECKING:
    from ackscope.clock import Instant


def redelivering_queues(
    previous: Mapping[str, int], channels: Iterable[Channel], consumers: Iterable[Consumer]
) -> tuple[dict[str, int], frozenset[QueueKey]]:
    """Return the queues whose consumers are on channels with a growing redelivery counter.

    Args:
        previous: channel name -> redelivery counter in the previous reading.
        channels: latest reading.
        consumers: latest reading.

    Returns:
        channel name -> latest counter, and the queues.
    """
    counters = {channel.name: channel.stats.redeliver for channel in channels if channel.stats.redeliver is not None}
    grown = {name for name, count in counters.items() if count > previous.get(name, 0)}
    queues = frozenset((it.vhost, it.queue) for it in consumers if it.channel_name in grown) if grown else frozenset()
    return counters, queues


class RedeliveryHints:
    """Collects redelivering queues from one reading of the queues to the next. Not thread-safe."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}
        self._channels_at: Instant | None = None
        self._queues_at: Instant | None = None
        self._queues: frozenset[QueueKey] = frozenset()

    def update(
        self,
        channels: Part[tuple[Channel, ...]],
        consumers: Part[tuple[Consumer, ...]],
        queues: Part[tuple[Queue, ...]],
    ) -> frozenset[QueueKey]:
        """Return the queues that redelivered since the queues were last read, given the latest readings."""
        if queues.at != self._queues_at:
            self._queues_at, self._queues = queues.at, frozenset()
        if channels.at != self._channels_at:
            self._channels_at = channels.at
            self._counters, found = redelivering_queues(self._counters, channels.value or (), consumers.value or ())
            self._queues |= found
        return self._queues

"""The delivery probe: measures the time from publisher to consumer, and lost, duplicate and reordered messages."""

from probes.catalogue.delivery import PROBE, DeliverySettings
from probes.matched_stream import MatchedStream
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext

NAME = PROBE.name


class DeliveryStream(MatchedStream):
    """Stream that publishes to a queue of one type, consumes from it, and matches confirms with deliveries."""

    def __init__(self, context: StreamContext, settings: DeliverySettings, queue_type: str) -> None:
        queue = context.queue(NAME, queue_type, queue_type)
        who = context.identity(NAME, queue_type, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        super().__init__(context, settings, who, queue)
        self._prefetch = settings.prefetch
        self._consumer: ProbeConnection | None = None

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`. It ends when one of its two connections ends."""
        self._epoch += 1
        name = f"ackscope-probe {NAME}"
        publisher = await ProbeConnection.open(self._context.server, name)
        try:
            self.stats.connected(publisher.product)
            await publisher.declare(self._source)
            self._consumer = await ProbeConnection.open(self._context.server, name)
            try:
                await self._live(publisher, self._consumer)
            finally:
                await self._consumer.close()
                self._consumer = None
        finally:
            await publisher.close()

    async def _live(self, publisher: ProbeConnection, consumer: ProbeConnection) -> None:
        await consumer.consume(self._source.name, self._prefetch, self._take)
        if self._epoch == 1:
            # Messages of an earlier run would be delivered first and delay ours. Safe, as this is the only consumer.
            await consumer.purge(self._source.name)
        await self._publish_while(publisher, consumer.closed)

    def _take(self, tag: int, body: bytes, at: float, *, redelivered: bool) -> None:
        self._delivered(body, at, redelivered=redelivered)
        if self._consumer is not None:
            self._consumer.ack(tag)


def streams(settings: DeliverySettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [DeliveryStream(context, settings, kind) for kind in settings.queue_types]

"""The delivery probe: measures the time from publisher to consumer, and lost, duplicate and reordered messages.

Publisher and consumer are in this process, so one monotonic clock times both ends. They use two connections, because on
one connection acks would wait behind deliveries.
"""

import asyncio
from typing import Any

from ackscope.clock import Instant
from ackscope.errors import BrokerError
from probes.catalogue.delivery import PROBE, DeliverySettings
from probes.confirm_ledger import Settled
from probes.deliveries import Matcher
from probes.message_stream import MessageStream
from probes.payload import read
from probes.probe_connection import ProbeConnection
from probes.probe_stream import ProbeStream, StreamContext, aggregate_share

NAME = PROBE.name


class DeliveryStream(MessageStream):
    """Stream that publishes to a queue of one type, consumes from it, and matches confirms with deliveries."""

    def __init__(self, context: StreamContext, settings: DeliverySettings, queue_type: str) -> None:
        queue = context.queue(NAME, queue_type, queue_type)
        who = context.identity(NAME, queue_type, queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        super().__init__(context, settings, who, queue)
        self._source, self._prefetch = queue, settings.prefetch
        self._consumer: ProbeConnection | None = None
        self._matcher = Matcher(settings.missing_after)
        self.stats.deliveries = self._matcher.counts

    @property
    def idle(self) -> bool:
        """Whether every message is settled and every confirmed one delivered."""
        return super().idle and not self._matcher.pending

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

    def tick(self, now: Instant) -> None:
        """Time out and aggregate messages."""
        if self._feed is not None:
            self._feed.tick(now.mono)
        for entry in self._matcher.expire(now.mono):
            self.stats.enter(entry)
        self.stats.deliveries = self._matcher.counts
        self.stats.aggregate(now, aggregate_share(self.stats.waiting))

    async def _live(self, publisher: ProbeConnection, consumer: ProbeConnection) -> None:
        await consumer.consume(self._source.name, self._prefetch, self._delivered)
        if self._epoch == 1:
            # Messages of an earlier run would be delivered first and delay ours. Safe, as this is the only consumer.
            await consumer.purge(self._source.name)
        self._feed = self._new_feed(publisher, consumed=True)
        publishing: asyncio.Future[Any] = asyncio.ensure_future(self._feed.run())
        gone: asyncio.Future[Any] = consumer.closed
        try:
            await asyncio.wait({publishing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._feed.finish(asyncio.get_running_loop().time())
            self._feed = None
            publishing.cancel()
            ended = await asyncio.gather(publishing, return_exceptions=True)
        if isinstance(ended[0], BrokerError):
            raise ended[0]
        raise consumer.closed.result()

    def _settled(self, messages: list[Settled]) -> None:
        for message in messages:
            entry = self._matcher.settled(self._epoch, message)
            if entry is not None:
                self.stats.enter(entry)

    def _delivered(self, tag: int, body: bytes, at: float, *, redelivered: bool) -> None:
        mark = read(body)
        if mark is not None and mark.run_id == self._context.run_id:
            entry = self._matcher.delivered(mark.epoch, mark.seq, at, redelivered=redelivered)
            if entry is not None:
                self.stats.enter(entry)
        if self._consumer is not None:
            self._consumer.ack(tag)


def streams(settings: DeliverySettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [DeliveryStream(context, settings, kind) for kind in settings.queue_types]

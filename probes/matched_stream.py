"""Base class of streams that publish, consume what they published, and match confirms with deliveries."""

import asyncio
from typing import Any

from ackscope.clock import Instant
from ackscope.errors import BrokerError
from probes.catalogue.probe import MatchedSettings
from probes.confirm_ledger import Settled
from probes.deliveries import Matcher
from probes.identity import Identity
from probes.message_stream import MessageStream
from probes.paced_publisher import PublishingConnection
from probes.payload import read
from probes.probe_stream import StreamContext, aggregate_share
from probes.queues import QueueSpec


class MatchedStream(MessageStream):
    """Publishes to a queue, and counts confirmed messages that are missing, duplicate or out of order.

    Publisher and consumer are in this process, so one monotonic clock times both ends. They use two connections,
    because on one connection acks would wait behind deliveries.

    Args:
        redelivers: whether the protocol tells that a delivery is not the first.
    """

    def __init__(
        self,
        context: StreamContext,
        settings: MatchedSettings,
        who: Identity,
        queue: QueueSpec,
        *,
        redelivers: bool = True,
    ) -> None:
        super().__init__(context, settings, who, queue)
        self._source = queue
        self._matcher = Matcher(settings.missing_after, redelivers=redelivers)
        self.stats.deliveries = self._matcher.counts

    @property
    def idle(self) -> bool:
        """Whether every message is settled and every confirmed one delivered."""
        return super().idle and not self._matcher.pending

    def tick(self, now: Instant) -> None:
        """Time out and aggregate messages."""
        if self._feed is not None:
            self._feed.tick(now.mono)
        for entry in self._matcher.expire(now.mono):
            self.stats.enter(entry)
        self.stats.deliveries = self._matcher.counts
        self.stats.aggregate(now, aggregate_share(self.stats.waiting))

    async def _publish_while(self, publisher: PublishingConnection, consuming: asyncio.Future[BrokerError]) -> None:
        """Publish until one of the two connections ends.

        Args:
            publisher: the publishing connection.
            consuming: future whose result is the reason why the consuming connection ended.

        Raises:
            BrokerError: the reason.
        """
        self._feed = self._new_feed(publisher, consumed=True)
        publishing: asyncio.Future[Any] = asyncio.ensure_future(self._feed.run())
        gone: asyncio.Future[Any] = consuming
        try:
            await asyncio.wait({publishing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._feed.finish(asyncio.get_running_loop().time())
            self._feed = None
            publishing.cancel()
            ended = await asyncio.gather(publishing, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]
        raise consuming.result()

    def _settled(self, messages: list[Settled]) -> None:
        for message in messages:
            entry = self._matcher.settled(self._epoch, message)
            if entry is not None:
                self.stats.enter(entry)

    def _delivered(self, body: bytes, at: float, *, redelivered: bool = False) -> None:
        mark = read(body)
        if mark is not None and mark.run_id == self._context.run_id:
            entry = self._matcher.delivered(mark.epoch, mark.seq, at, redelivered=redelivered)
            if entry is not None:
                self.stats.enter(entry)

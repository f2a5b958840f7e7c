"""Base class of streams that publish messages."""

import asyncio
from collections.abc import Callable

from ackscope.clock import Instant
from probes.bursts import Burst
from probes.catalogue.probe import SendingSettings
from probes.confirm_ledger import Settled
from probes.identity import Identity
from probes.paced_publisher import PacedPublisher, PublishingConnection
from probes.payload import PayloadWriter
from probes.probe_connection import ProbeConnection
from probes.probe_stream import StreamContext, aggregate_share
from probes.queues import QueueSpec
from probes.stream_stats import MessageEntry


class MessageStream:
    """Publishes on one path and records the outcome of each message.

    Args:
        queue: the target queue; None to publish only with a routing key.
        key: the routing key; default: the name of the queue.
        watch: called with every burst of acks.
    """

    def __init__(
        self,
        context: StreamContext,
        settings: SendingSettings,
        who: Identity,
        queue: QueueSpec | None,
        *,
        key: str = "",
        watch: Callable[[Burst], None] | None = None,
    ) -> None:
        self._context, self._settings = context, settings
        self._queue, self._key, self._watch = queue, key, watch
        self._epoch = 0
        self._stopped = False
        self._feed: PacedPublisher | None = None
        self.cluster = context.cluster
        self.stats = context.new_stats(who)

    @property
    def queues(self) -> tuple[str, ...]:
        """Names of its queues."""
        return () if self._queue is None else (self._queue.name,)

    @property
    def idle(self) -> bool:
        """Whether every message is settled."""
        return self._feed is None or self._feed.outstanding == 0

    async def session(self) -> None:
        """Run one session; see `ProbeStream.session`."""
        self._epoch += 1
        link = await self.open()
        try:
            self.stats.connected(link.product)
            if self._queue is not None:
                await link.declare(self._queue)
            self._feed = self._new_feed(link)
            await self._feed.run()
        finally:
            if self._feed is not None:
                self._feed.finish(asyncio.get_running_loop().time())
                self._feed = None
            await link.close()

    async def open(self) -> PublishingConnection:
        """Open the connection of a session.

        Raises:
            BrokerError: the connection failed.
        """
        return await ProbeConnection.open(self._context.server, f"ackscope-probe {self.stats.who.probe}")

    def tick(self, now: Instant) -> None:
        """Time out and aggregate messages."""
        if self._feed is not None:
            self._feed.tick(now.mono)
        self.stats.aggregate(now, aggregate_share(self.stats.waiting))

    def stop_sending(self) -> None:
        """Stop sending, even in a session that is just starting."""
        self._stopped = True
        if self._feed is not None:
            self._feed.stop_sending()

    def _new_feed(self, link: PublishingConnection, *, consumed: bool = False) -> PacedPublisher:
        """Create a publisher for this epoch. `consumed`: the queue has a consumer, which prevents its expiry."""
        feed = PacedPublisher(
            link,
            self._queue,
            self._settings,
            writer=PayloadWriter(self._context.run_id, self._epoch, self.stats.who.payload_bytes),
            stats=self.stats,
            random=self._context.random,
            sink=self._settled,
            key=self._key,
            consumed=consumed,
            watch=self._watch,
        )
        if self._stopped:
            feed.stop_sending()
        return feed

    def _settled(self, messages: list[Settled]) -> None:
        for message in messages:
            self.stats.enter(MessageEntry(self._epoch, message))

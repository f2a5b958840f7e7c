"""What streams have in common that publish messages."""

import asyncio
from collections.abc import Callable

from ackscope.clock import Instant
from probes.book import Entry
from probes.bursts import Burst
from probes.feed import Feed
from probes.identity import Identity
from probes.ledger import Settled
from probes.link import Link
from probes.payload import Writer
from probes.queues import QueueSpec
from probes.settings import SendingSettings
from probes.stream import Context, digest_share


class Sending:
    """Publishes along one path and enters what becomes of each message.

    Args:
        queue: where to; None where only a routing key is needed.
        key: the routing key, where it is not the queue's name.
        watch: is given every burst of acks.
    """

    def __init__(
        self,
        context: Context,
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
        self._feed: Feed | None = None
        self.cluster = context.cluster
        self.book = context.new_book(who)

    @property
    def queues(self) -> tuple[str, ...]:
        """Names of all that it makes on the broker."""
        return () if self._queue is None else (self._queue.name,)

    @property
    def idle(self) -> bool:
        """Whether every message is settled."""
        return self._feed is None or self._feed.outstanding == 0

    async def session(self) -> None:
        """Live through one epoch; see `Stream.session`."""
        self._epoch += 1
        link = await Link.open(self._context.server, f"ackscope-probe {self.book.who.probe}")
        try:
            self.book.connected(link.product)
            if self._queue is not None:
                await link.declare(self._queue)
            self._feed = self._new_feed(link)
            await self._feed.run()
        finally:
            if self._feed is not None:
                self._feed.finish(asyncio.get_running_loop().time())
                self._feed = None
            await link.close()

    def tick(self, now: Instant) -> None:
        """Age messages and digest what came in."""
        if self._feed is not None:
            self._feed.tick(now.mono)
        self.book.digest(now, digest_share(self.book.waiting))

    def stop_sending(self) -> None:
        """Send no more, in this session and in one that is just starting."""
        self._stopped = True
        if self._feed is not None:
            self._feed.stop_sending()

    def _new_feed(self, link: Link, *, consumed: bool = False) -> Feed:
        """The publishing side of this epoch; `consumed`: the queue has a consumer, which keeps it from expiring."""
        feed = Feed(
            link,
            self._queue,
            self._settings,
            writer=Writer(self._context.run_id, self._epoch, self.book.who.payload_bytes),
            book=self.book,
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
            self.book.enter(Entry(self._epoch, message))

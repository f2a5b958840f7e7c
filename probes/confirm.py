"""The confirm probe: how long the broker takes to confirm a persistent message, and what becomes of it.

Nothing consumes from its queues. A classic queue may confirm a message as soon as a consumer has acknowledged it,
before it reached the disk: with a consumer the path to disk would not be measured. The queues stay small by their
length limit.
"""

import asyncio

from ackscope.clock import Instant
from probes.book import Entry
from probes.feed import Feed
from probes.ledger import Settled
from probes.link import Link
from probes.payload import Writer
from probes.settings import ConfirmSettings, ProbesSettings
from probes.stream import Context, Stream, digest_share

NAME = "confirm"


class ConfirmStream:
    """Publishes to one queue type and times the confirms."""

    def __init__(self, context: Context, settings: ConfirmSettings, queue_type: str) -> None:
        self._context, self._settings = context, settings
        self._queue = context.queue(NAME, queue_type, queue_type)
        self._epoch = 0
        self._stopped = False
        self._feed: Feed | None = None
        self.cluster = context.cluster
        self.book = context.new_book(
            context.identity(NAME, queue_type, self._queue, rate=settings.rate, payload_bytes=settings.payload_bytes)
        )

    @property
    def idle(self) -> bool:
        """Whether every message is settled."""
        return self._feed is None or self._feed.outstanding == 0

    async def session(self) -> None:
        """Live through one epoch; see `Stream.session`."""
        self._epoch += 1
        link = await Link.open(self._context.server, f"ackscope-probe {NAME}")
        try:
            self.book.connected(link.product)
            await link.declare(self._queue)
            self._feed = Feed(
                link,
                self._queue,
                self._settings,
                writer=Writer(self._context.run_id, self._epoch, self._settings.payload_bytes),
                book=self.book,
                random=self._context.random,
                sink=self._settled,
            )
            if self._stopped:
                self._feed.stop_sending()
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

    def _settled(self, messages: list[Settled]) -> None:
        for message in messages:
            self.book.enter(Entry(self._epoch, message))


def streams(settings: ProbesSettings, context: Context) -> list[Stream]:
    """One stream a queue type."""
    return [ConfirmStream(context, settings.confirm, kind) for kind in settings.confirm.queue_types]

"""The nack probe: a queue that must refuse every message, so that the way of a basic.nack is known to work.

Its length limit is 0 and it rejects what does not fit: nothing is ever stored. An ack here is the failure.
"""

import asyncio
from dataclasses import replace

from ackscope.clock import Instant
from ackscope.records import Outcome
from probes.book import Entry
from probes.feed import Feed
from probes.ledger import Settled
from probes.link import Link
from probes.payload import Writer
from probes.settings import NackSettings, ProbesSettings
from probes.stream import Context, Stream, digest_share

NAME = "nack"

_REFUSES = {"x-max-length": 0, "x-overflow": "reject-publish"}


class NackStream:
    """Publishes to a queue that is always full and times the nacks."""

    def __init__(self, context: Context, settings: NackSettings) -> None:
        self._context, self._settings = context, settings
        # Quorum queues let some messages in before they refuse.
        self._queue = replace(context.queue(NAME, NAME, "classic"), extra=_REFUSES)
        self._epoch = 0
        self._stopped = False
        self._feed: Feed | None = None
        self.cluster, self.queues = context.cluster, (self._queue.name,)
        self.book = context.new_book(
            context.identity(
                NAME,
                NAME,
                self._queue,
                rate=settings.rate,
                payload_bytes=settings.payload_bytes,
                expected=Outcome.NACKED,
            )
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
    """The one stream."""
    return [NackStream(context, settings.nack)]

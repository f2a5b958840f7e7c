"""The confirm probe: how long the broker takes to confirm a message, and what becomes of it, layer by layer.

Its streams run side by side and differ in one thing each, so that the difference of two is the cost of a layer of the
broker (see `layers.py`). Nothing consumes from its queues. A classic queue may confirm a message as soon as a consumer
has acknowledged it, before it reached the disk: with a consumer the path to disk would not be measured. The queues stay
small by their limits.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ackscope.clock import Instant
from probes.batching import BurstWindow, estimate, syncs_first
from probes.book import Entry
from probes.bursts import Burst
from probes.feed import Feed
from probes.identity import PERSISTENT, TRANSIENT
from probes.ledger import Settled
from probes.link import Link
from probes.payload import Writer
from probes.queues import nowhere
from probes.settings import ConfirmSettings, ProbesSettings
from probes.stream import Context, Stream, digest_share

NAME = "confirm"

LARGE = 4096
"""Bytes from which on a classic queue keeps bodies in the store that all queues of a vhost share."""

_ESTIMATE_EVERY = 1.0


class Path(NamedTuple):
    """A path of messages through the broker.

    Attributes:
        about: what it is, for a person.
        queue_type: "none" where no queue takes part.
        control: it is there to be compared with, at a rate of its own.
        large: bodies have at least `LARGE` bytes.
    """

    about: str
    queue_type: str
    delivery_mode: int = PERSISTENT
    control: bool = True
    large: bool = False


PATHS: Mapping[str, Path] = {
    "unroutable": Path("the channel answers itself: no queue takes it", "none"),
    "transient": Path("classic queue, in memory", "classic", TRANSIENT),
    "classic": Path("classic queue, persistent", "classic", control=False),
    "classic-large": Path("classic queue, persistent, in the shared store", "classic", large=True),
    "quorum": Path("quorum queue", "quorum", control=False),
    "stream": Path("stream", "stream"),
}
"""Every stream by its name."""


class ConfirmStream:
    """Publishes along one path and times the confirms."""

    def __init__(self, context: Context, settings: ConfirmSettings, name: str) -> None:
        self._context, self._settings = context, settings
        path = PATHS[name]
        self._queue = None if path.queue_type == "none" else context.queue(NAME, name, path.queue_type)
        self._epoch = 0
        self._stopped = False
        self._feed: Feed | None = None
        self._bursts = BurstWindow(span=context.span)
        self._estimate_at = 0.0
        self.cluster = context.cluster
        self.book = context.new_book(
            context.identity(
                NAME,
                name,
                self._queue,
                rate=settings.control_rate if path.control else settings.rate,
                payload_bytes=max(LARGE, settings.payload_bytes) if path.large else settings.payload_bytes,
                delivery_mode=path.delivery_mode,
            )
        )

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
        link = await Link.open(self._context.server, f"ackscope-probe {NAME}")
        try:
            self.book.connected(link.product)
            if self._queue is not None:
                await link.declare(self._queue)
            self._feed = Feed(
                link,
                self._queue,
                self._settings,
                writer=Writer(self._context.run_id, self._epoch, self.book.who.payload_bytes),
                book=self.book,
                random=self._context.random,
                sink=self._settled,
                key="" if self._queue is not None else nowhere(self._context.prefix),
                watch=self._bursts.add,
            )
            if self._stopped:
                self._feed.stop_sending()
            await self._feed.run()
        finally:
            if self._feed is not None:
                now = asyncio.get_running_loop().time()
                self._feed.finish(now)
                self._feed = None
                self._conclude(self._bursts.whole(), now)
            await link.close()

    def tick(self, now: Instant) -> None:
        """Age messages and digest what came in; about once a second, look at how confirms are batched."""
        if self._feed is not None:
            self._feed.tick(now.mono)
        self.book.digest(now, digest_share(self.book.waiting))
        if now.mono >= self._estimate_at:
            self._estimate_at = now.mono + _ESTIMATE_EVERY
            self._conclude(self._bursts.recent(now.mono), now.mono)

    def stop_sending(self) -> None:
        """Send no more, in this session and in one that is just starting."""
        self._stopped = True
        if self._feed is not None:
            self._feed.stop_sending()

    def _conclude(self, bursts: Sequence[Burst], now: float) -> None:
        who = self.book.who
        self.book.batching = estimate(
            bursts,
            rate=who.rate,
            fsync=syncs_first(who.queue_type, who.delivery_mode, self.book.broker),
            writes=self._queue is not None and who.delivery_mode == PERSISTENT,
            own_error=self._context.lag.recent.summary(now).p90,
        )

    def _settled(self, messages: list[Settled]) -> None:
        for message in messages:
            self.book.enter(Entry(self._epoch, message))


def streams(settings: ProbesSettings, context: Context) -> list[Stream]:
    """One stream a path that was asked for."""
    return [ConfirmStream(context, settings.confirm, name) for name in dict.fromkeys(settings.confirm.streams)]

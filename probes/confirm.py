"""The confirm probe: measures how long the broker takes to confirm a message, by layers of the broker.

Its streams run in parallel. Compared streams differ in one layer, so that their difference is the cost of that layer
(see `latency_layers.py`). Nothing consumes from its queues: a classic queue may confirm a message as soon as a consumer
has acked it, before it is on disk, so with a consumer the path to disk would not be measured. Length limits keep the
queues small.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ackscope.clock import Instant
from probes.batching import BurstWindow, estimate, syncs_first
from probes.bursts import Burst
from probes.catalogue.confirm import PROBE, ConfirmSettings
from probes.identity import PERSISTENT, TRANSIENT
from probes.message_stream import MessageStream
from probes.probe_stream import ProbeStream, StreamContext
from probes.queues import nowhere

NAME = PROBE.name

LARGE = 4096
"""Size in bytes from which a classic queue stores bodies in the message store of its vhost, shared by all queues."""

_ESTIMATE_EVERY = 1.0


class ConfirmPath(NamedTuple):
    """The path of a stream's messages through the broker.

    Attributes:
        about: description in reports.
        queue_type: "none" without a queue.
        control: whether the stream is only for comparison, with its own rate.
        large: whether bodies have at least `LARGE` bytes.
    """

    about: str
    queue_type: str
    delivery_mode: int = PERSISTENT
    control: bool = True
    large: bool = False


PATHS: Mapping[str, ConfirmPath] = {
    "unroutable": ConfirmPath("the channel answers itself: no queue takes it", "none"),
    "transient": ConfirmPath("classic queue, in memory", "classic", TRANSIENT),
    "classic": ConfirmPath("classic queue, persistent", "classic", control=False),
    "classic-large": ConfirmPath("classic queue, persistent, in the shared store", "classic", large=True),
    "quorum": ConfirmPath("quorum queue", "quorum", control=False),
    "stream": ConfirmPath("stream", "stream"),
}
"""Every path by the name of its stream."""


class ConfirmStream(MessageStream):
    """Stream that publishes on one path and measures the confirm latency."""

    def __init__(self, context: StreamContext, settings: ConfirmSettings, name: str) -> None:
        path = PATHS[name]
        queue = None if path.queue_type == "none" else context.queue(NAME, name, path.queue_type)
        who = context.identity(
            NAME,
            name,
            queue,
            rate=settings.control_rate if path.control else settings.rate,
            payload_bytes=max(LARGE, settings.payload_bytes) if path.large else settings.payload_bytes,
            delivery_mode=path.delivery_mode,
        )
        self._bursts = BurstWindow(span=context.span)
        self._estimate_at = 0.0
        key = "" if queue is not None else nowhere(context.prefix)
        super().__init__(context, settings, who, queue, key=key, watch=self._bursts.add)

    async def session(self) -> None:
        """Run one session, with a final estimate of batching; see `ProbeStream.session`."""
        try:
            await super().session()
        finally:
            self._conclude(self._bursts.whole(), asyncio.get_running_loop().time())

    def tick(self, now: Instant) -> None:
        """Time out and aggregate messages. About once a second, estimate how confirms are batched."""
        super().tick(now)
        if now.mono >= self._estimate_at:
            self._estimate_at = now.mono + _ESTIMATE_EVERY
            self._conclude(self._bursts.recent(now.mono), now.mono)

    def _conclude(self, bursts: Sequence[Burst], now: float) -> None:
        who = self.stats.who
        self.stats.batching = estimate(
            bursts,
            rate=who.rate,
            fsync=syncs_first(who.queue_type, who.delivery_mode, self.stats.broker),
            writes=who.queue_type != "none" and who.delivery_mode == PERSISTENT,
            own_error=self._context.lag.recent.summary(now).p90,
        )


def streams(settings: ConfirmSettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each configured path."""
    return [ConfirmStream(context, settings, name) for name in dict.fromkeys(settings.streams)]

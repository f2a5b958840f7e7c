"""The prefetch probe: keeps a consumer at its prefetch limit, to check that the broker respects the limit.

In each round its queue gets twice as many messages as the prefetch limit. The consumer receives messages up to the
limit (step `fill`), then acknowledges them one by one. Each ack must bring exactly one more message (step `refill`: the
time for which a consumer with prefetch 1 would be idle).
"""

import asyncio

from probes.catalogue.prefetch import PROBE, PrefetchSettings
from probes.payload import PayloadWriter
from probes.probe_stream import ProbeStream, StreamContext
from probes.publisher_consumer import PublisherConsumerPair
from probes.scripted_stream import ScriptedStream, TimedStep
from probes.verify.frames import Delivery

NAME = PROBE.name
FILL, REFILL = "fill", "refill"

_BYTES = 64


class PrefetchStream(ScriptedStream[PublisherConsumerPair]):
    """Stream of one queue type."""

    def __init__(self, context: StreamContext, settings: PrefetchSettings, queue_type: str) -> None:
        queue = context.queue(NAME, queue_type, queue_type)
        stats = context.new_stats(context.identity(NAME, queue_type, queue, payload_bytes=_BYTES))
        stats.prefetch = settings.prefetch
        super().__init__(context, stats, settings, [queue])
        self._queue, self._prefetch = queue.name, settings.prefetch

    async def open_pair(self, name: str) -> PublisherConsumerPair:
        """Open the connections of a session."""
        return await PublisherConsumerPair.open(self._context.server, name, self._timeout)

    async def prepare(self, pair: PublisherConsumerPair) -> None:
        """Set the prefetch limit."""
        await pair.taker.qos(self._prefetch)

    async def work(self, pair: PublisherConsumerPair) -> None:
        """Run the step `fill`, then the step `refill` for each message up to the limit."""
        writer = PayloadWriter(self._context.run_id, self._epoch, _BYTES)
        pair.taker.log.clear()
        await pair.publish(self._queue, [writer.write(number) for number in range(1, 2 * self._prefetch + 1)])
        await self.step(FILL, lambda: self._fill(pair))
        for number in range(1, self._prefetch + 1):
            await self.step(REFILL, lambda number=number: self._refill(pair, number))  # type: ignore[misc]
        pair.taker.ack(0, multiple=True)
        for consumer in {delivery.consumer for delivery in pair.taker.frames(Delivery)}:
            await pair.taker.cancel(consumer)

    async def _fill(self, pair: PublisherConsumerPair) -> TimedStep:
        began = asyncio.get_running_loop().time()
        await pair.taker.consume(self._queue)
        last = await pair.delivery(pair.taker, self._prefetch, f"message {self._prefetch}")
        # A round trip to the queue: deliveries that it has already sent arrive before the answer.
        await pair.taker.look(self._queue)
        return TimedStep(began, last.at - began, self._look(pair, acked=0))

    async def _refill(self, pair: PublisherConsumerPair, number: int) -> TimedStep:
        taker = pair.taker
        began = asyncio.get_running_loop().time()
        taker.ack(taker.frames(Delivery)[number - 1].tag)
        came = await pair.delivery(taker, self._prefetch + number, "the message after an ack")
        return TimedStep(began, came.at - began, self._look(pair, acked=number))

    def _look(self, pair: PublisherConsumerPair, acked: int) -> str | None:
        """Record the number of unacked deliveries. Returns the error text if it is above the limit, else None."""
        unacked = len(pair.taker.frames(Delivery)) - acked
        self.stats.unacked.record(unacked, asyncio.get_running_loop().time())
        return over(unacked, self._prefetch)


def over(unacked: int, prefetch: int) -> str | None:
    """Return the error text for a consumer with this many unacked deliveries; None if that is allowed."""
    if unacked <= prefetch:
        return None
    return f"the broker sent {unacked} deliveries without an ack; the prefetch limit is {prefetch}"


def streams(settings: PrefetchSettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [PrefetchStream(context, settings, kind) for kind in dict.fromkeys(settings.queue_types)]

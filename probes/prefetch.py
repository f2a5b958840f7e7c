"""The prefetch probe: a consumer at its prefetch limit, to check that the broker respects the limit.

Each round a queue of its own gets twice as many messages as the consumer allows unacknowledged. The consumer fills up
(step `fill`), then acknowledges one by one; each ack must bring exactly one more (step `refill`: the time for which a
consumer with prefetch 1 would have nothing to do).
"""

import asyncio

from probes.payload import PayloadWriter
from probes.probe_stream import ProbeStream, StreamContext
from probes.publisher_consumer import PublisherConsumerPair
from probes.scripted_stream import ScriptedStream, TimedStep
from probes.settings import PrefetchSettings, ProbesSettings
from probes.verify.frames import Delivery

NAME = "prefetch"
FILL, REFILL = "fill", "refill"

_BYTES = 64


class PrefetchStream(ScriptedStream):
    """One queue type."""

    def __init__(self, context: StreamContext, settings: PrefetchSettings, queue_type: str) -> None:
        queue = context.queue(NAME, queue_type, queue_type)
        stats = context.new_stats(context.identity(NAME, queue_type, queue, payload_bytes=_BYTES))
        stats.prefetch = settings.prefetch
        super().__init__(context, stats, settings, [queue])
        self._queue, self._prefetch = queue.name, settings.prefetch

    async def prepare(self, pair: PublisherConsumerPair) -> None:
        """Set the limit."""
        await pair.taker.qos(self._prefetch)

    async def work(self, pair: PublisherConsumerPair) -> None:
        """Fill, then acknowledge one by one."""
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
        # Deliveries that the queue has already sent arrive before its answer.
        await pair.taker.look(self._queue)
        return TimedStep(began, last.at - began, self._look(pair, acked=0))

    async def _refill(self, pair: PublisherConsumerPair, number: int) -> TimedStep:
        taker = pair.taker
        began = asyncio.get_running_loop().time()
        taker.ack(taker.frames(Delivery)[number - 1].tag)
        came = await pair.delivery(taker, self._prefetch + number, "the message after an ack")
        return TimedStep(began, came.at - began, self._look(pair, acked=number))

    def _look(self, pair: PublisherConsumerPair, acked: int) -> str | None:
        """Enter how many deliveries are unacknowledged; what is wrong with that."""
        unacked = len(pair.taker.frames(Delivery)) - acked
        self.stats.unacked.record(unacked, asyncio.get_running_loop().time())
        return over(unacked, self._prefetch)


def over(unacked: int, prefetch: int) -> str | None:
    """The error text if a consumer has this many unacked deliveries; None if that is allowed."""
    if unacked <= prefetch:
        return None
    return f"the broker sent {unacked} deliveries without an ack; the prefetch limit is {prefetch}"


def streams(settings: ProbesSettings, context: StreamContext) -> list[ProbeStream]:
    """One stream for each queue type."""
    return [PrefetchStream(context, settings.prefetch, kind) for kind in dict.fromkeys(settings.prefetch.queue_types)]

"""The redelivery probe: causes redeliveries on purpose, checks them, and measures how long they take.

In each round, on its own queues, it requeues a message with basic.nack, requeues one by closing its channel, and
dead-letters one. In some rounds it also requeues a message by cutting its connection. Redeliveries must have the
redelivered flag and stay before later messages. A quorum queue counts deliveries and drops a message after 20 by
default; here no message is delivered more than twice.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from probes.catalogue.redelivery import PROBE, RedeliverySettings
from probes.payload import PayloadWriter, read
from probes.probe_stream import ProbeStream, StreamContext
from probes.publisher_consumer import PublisherConsumerPair, StepFailed
from probes.scripted_stream import ScriptedStream, TimedStep
from probes.stream_stats import DeliveryCounts
from probes.verify.channel import RawChannel
from probes.verify.frames import Delivery

NAME = PROBE.name
REQUEUE, CHANNEL_CLOSE, CONNECTION_LOSS, DEAD_LETTER = "requeue", "channel-close", "connection-loss", "dead-letter"

_BYTES = 64
_DELIVERY_LIMIT = 20
"""The default of 4.x. It is set explicitly for 3.x, where a quorum queue without a limit requeues at its tail."""


class RedeliveryStream(ScriptedStream[PublisherConsumerPair]):
    """Stream of one queue type: a queue and its dead-letter queue."""

    def __init__(self, context: StreamContext, settings: RedeliverySettings, queue_type: str) -> None:
        dead = context.queue(NAME, f"{queue_type}.dead", queue_type)
        extra: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        if queue_type == "quorum":
            extra["x-delivery-limit"] = _DELIVERY_LIMIT
        queue = replace(context.queue(NAME, queue_type, queue_type), extra=extra)
        stats = context.new_stats(context.identity(NAME, queue_type, queue, payload_bytes=_BYTES))
        stats.deliveries = DeliveryCounts()
        super().__init__(context, stats, settings, [queue, dead])
        self._queue, self._dead = queue.name, dead.name
        self._loss_every, self._loss_at = settings.connection_loss_every, 0.0
        self._sent = 0

    async def open_pair(self, name: str) -> PublisherConsumerPair:
        """Open the connections of a session."""
        return await PublisherConsumerPair.open(self._context.server, name, self._timeout)

    async def prepare(self, pair: PublisherConsumerPair) -> None:
        """Set prefetch 1, so that the next message shows whether a requeued one kept its position."""
        await pair.taker.qos(1)

    async def work(self, pair: PublisherConsumerPair) -> None:
        """Run all steps in order."""
        await self.step(REQUEUE, lambda: self._requeue(pair))
        await self.step(CHANNEL_CLOSE, lambda: self._channel_close(pair))
        await self.step(DEAD_LETTER, lambda: self._dead_letter(pair))
        now = asyncio.get_running_loop().time()
        if self._loss_every and now >= self._loss_at:
            self._loss_at = now + self._loss_every
            await self.step(CONNECTION_LOSS, lambda: self._connection_loss(pair))

    async def _requeue(self, pair: PublisherConsumerPair) -> TimedStep:
        first, *_ = numbers = await self._publish(pair, 3)
        taker = pair.taker
        consumer = await taker.consume(self._queue)
        taker.ack((await pair.delivery(taker, 1, "the first message")).tag)
        held = await pair.delivery(taker, 2, "the second message")
        began = asyncio.get_running_loop().time()
        taker.nack(held.tag)
        again = await pair.delivery(taker, 3, "the requeued message")
        taker.ack(again.tag)
        taker.ack((await pair.delivery(taker, 4, "the message after the requeued one")).tag)
        await taker.cancel(consumer)
        came = [_number(delivery) - first + 1 for delivery in self._count(taker)]
        flags = [delivery.redelivered for delivery in taker.frames(Delivery)]
        return TimedStep(began, again.at - began, wrong_order(came, len(numbers)) or wrong_flags(came, flags))

    async def _channel_close(self, pair: PublisherConsumerPair) -> TimedStep:
        other = await pair.new_channel()
        number = await self._hold(pair, other)
        consumer = await pair.taker.consume(self._queue)
        began = asyncio.get_running_loop().time()
        await other.close()
        return await self._again(pair, number, consumer, began)

    async def _connection_loss(self, pair: PublisherConsumerPair) -> TimedStep:
        third = await pair.third()
        try:
            number = await self._hold(pair, await third.channel())
            consumer = await pair.taker.consume(self._queue)
            began = asyncio.get_running_loop().time()
        finally:
            third.cut()
        return await self._again(pair, number, consumer, began)

    async def _dead_letter(self, pair: PublisherConsumerPair) -> TimedStep:
        taker = pair.taker
        (number,) = await self._publish(pair, 1)
        held = await taker.get(self._queue)
        if held is None:
            raise StepFailed("a confirmed message was not in its queue")
        consumer = await taker.consume(self._dead)
        began = asyncio.get_running_loop().time()
        taker.nack(held.tag, requeue=False)
        dead = await pair.delivery(taker, 2, "the dead letter")
        taker.ack(dead.tag)
        await taker.cancel(consumer)
        self._count(taker)
        return TimedStep(began, dead.at - began, _wrong_message(dead, number) or wrong_death(dead.headers, self._queue))

    async def _publish(self, pair: PublisherConsumerPair, count: int) -> Sequence[int]:
        numbers = range(self._sent + 1, self._sent + count + 1)
        self._sent += count
        writer = PayloadWriter(self._context.run_id, self._epoch, _BYTES)
        pair.taker.log.clear()
        await pair.publish(self._queue, [writer.write(number) for number in numbers])
        return numbers

    async def _hold(self, pair: PublisherConsumerPair, holder: RawChannel) -> int:
        (number,) = await self._publish(pair, 1)
        if await holder.get(self._queue) is None:
            raise StepFailed("a confirmed message was not in its queue")
        return number

    async def _again(self, pair: PublisherConsumerPair, number: int, consumer: str, began: float) -> TimedStep:
        taker = pair.taker
        again = await pair.delivery(taker, 1, "the requeued message")
        taker.ack(again.tag)
        await taker.cancel(consumer)
        self._count(taker)
        flag = None if again.redelivered else "the redelivered flag of the requeued message is not set"
        return TimedStep(began, again.at - began, _wrong_message(again, number) or flag)

    def _count(self, channel: RawChannel) -> list[Delivery]:
        deliveries = channel.frames(Delivery)
        counts = self.stats.deliveries or DeliveryCounts()
        again = sum(delivery.redelivered for delivery in deliveries)
        self.stats.deliveries = counts._replace(redeliveries=(counts.redeliveries or 0) + again)
        return deliveries


def _number(delivery: Delivery) -> int:
    mark = read(delivery.body)
    return -1 if mark is None else mark.seq


def _wrong_message(delivery: Delivery, number: int) -> str | None:
    return None if _number(delivery) == number else "received a different message from the one that was published"


def wrong_order(came: Sequence[int], count: int) -> str | None:
    """Return the error text for an order of deliveries in which message 2 was requeued; None if it is correct."""
    expected = [1, 2, *range(2, count + 1)]
    if list(came) == expected:
        return None
    order = ", ".join(str(number) for number in came)
    return f"the requeued message lost its position: received {order}, expected {', '.join(map(str, expected))}"


def wrong_flags(came: Sequence[int], flags: Sequence[bool]) -> str | None:
    """Return the error text for the redelivered flags of deliveries in this order; None if they are correct."""
    for place, (number, flag) in enumerate(zip(came, flags, strict=True)):
        again = number in came[:place]
        if flag is not again:
            return f"the redelivered flag is {str(flag).lower()} on a {'second' if again else 'first'} delivery"
    return None


def wrong_death(headers: dict[str, object], queue: str) -> str | None:
    """Return the error text for the x-death header of a message rejected once from `queue`; None if it is correct."""
    deaths = headers.get("x-death")
    if not isinstance(deaths, list) or len(deaths) != 1 or not isinstance(deaths[0], dict):
        return "the dead letter has no x-death header with one entry"
    expected = {"queue": queue, "reason": "rejected", "count": 1, "exchange": "", "routing-keys": [queue]}
    for key, value in expected.items():
        if deaths[0].get(key) != value:
            return f"x-death of the dead letter: {key} is {deaths[0].get(key)!r}, expected {value!r}"
    return None


def streams(settings: RedeliverySettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [RedeliveryStream(context, settings, kind) for kind in dict.fromkeys(settings.queue_types)]

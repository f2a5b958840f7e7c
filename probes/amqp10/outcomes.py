"""The outcomes probe: settles messages over AMQP 1.0 in every way, and checks and times what the broker does with each.

In each round, on its own queues, it accepts, rejects, releases and modifies messages, uses up its credit and has it
drained, and closes a link that holds a message. In some rounds it also deletes a queue under a link, and cuts a
connection. A quorum queue drops a message after 20 failed deliveries by default; here none fails more than once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from probes.amqp10.links import Amqp10Receiver, Received
from probes.amqp10.pair import Amqp10Pair
from probes.catalogue.outcomes import PROBE, OutcomesSettings
from probes.payload import PayloadWriter, read
from probes.probe_stream import ProbeStream, StreamContext
from probes.scripted_stream import ScriptedStream, TimedStep
from probes.stream_stats import DeliveryCounts

NAME = PROBE.name
ACCEPTED, REJECTED, RELEASED, MODIFIED, UNDELIVERABLE = "accepted", "rejected", "released", "modified", "undeliverable"
CREDIT, DRAIN, LINK_CLOSE = "credit", "drain", "link-close"
QUEUE_DELETED, CONNECTION_LOSS = "queue-deleted", "connection-loss"

_BYTES = 64
_DELIVERY_LIMIT = 20
_DELETED = "amqp:resource-deleted"


class OutcomesStream(ScriptedStream[Amqp10Pair]):
    """Stream of one queue type: a queue, its dead-letter queue, and one that is deleted under a link."""

    def __init__(self, context: StreamContext, settings: OutcomesSettings, queue_type: str) -> None:
        dead = context.queue(NAME, f"{queue_type}.dead", queue_type)
        # Its type does not matter to the link, and a quorum queue is expensive to declare.
        self._brief = context.queue(NAME, f"{queue_type}.deleted", "classic")
        extra: dict[str, object] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        if queue_type == "quorum":
            extra["x-delivery-limit"] = _DELIVERY_LIMIT
        queue = replace(context.queue(NAME, queue_type, queue_type), extra=extra)
        stats = context.new_stats(context.identity(NAME, queue_type, queue, payload_bytes=_BYTES))
        stats.deliveries = DeliveryCounts()
        super().__init__(context, stats, settings, [queue, dead])
        self.queues = (*self.queues, self._brief.name)
        self._queue, self._dead, self._queue_type = queue.name, dead.name, queue_type
        self._disrupt_every, self._disrupt_at = settings.disruption_every, 0.0
        self._sent = 0

    async def open_pair(self, name: str) -> Amqp10Pair:
        """Open the connections of a session."""
        return await Amqp10Pair.open(self._context.server, name, self._timeout)

    async def prepare(self, pair: Amqp10Pair) -> None:
        """Nothing to prepare: every step attaches links of its own."""

    async def work(self, pair: Amqp10Pair) -> None:
        """Run all steps in order, each with links of its own."""
        failed = 1 if self._queue_type == "quorum" else None
        steps: list[tuple[str, Callable[[], Awaitable[TimedStep]]]] = [
            (ACCEPTED, lambda: self._accepted(pair)),
            (RELEASED, lambda: self._returned(pair, self._release, 0)),
            (MODIFIED, lambda: self._returned(pair, self._modify, failed)),
            (REJECTED, lambda: self._dead_letter(pair, Amqp10Receiver.reject)),
            (UNDELIVERABLE, lambda: self._dead_letter(pair, self._undeliverable)),
            (CREDIT, lambda: self._credit(pair)),
            (DRAIN, lambda: self._drain(pair)),
            (LINK_CLOSE, lambda: self._link_close(pair)),
        ]
        now = asyncio.get_running_loop().time()
        if self._disrupt_every and now >= self._disrupt_at:
            self._disrupt_at = now + self._disrupt_every
            steps += [
                (QUEUE_DELETED, lambda: self._queue_deleted(pair)),
                (CONNECTION_LOSS, lambda: self._connection_loss(pair)),
            ]
        for name, do in steps:
            await self.step(name, do)
            await pair.renew()

    async def _accepted(self, pair: Amqp10Pair) -> TimedStep:
        first, second = await self._publish(pair, 2)
        link = await pair.receiver(self._queue, 1)
        one = await pair.delivery(link, 1, "the first message")
        began = link.accept(one)
        link.ask(1)
        two = await pair.delivery(link, 2, "the message after the accepted one")
        link.accept(two)
        wrong = wrong_order(link.deliveries, [first, second]) or wrong_counts(link.deliveries, [0, 0])
        # An accepted message must not come back: draining gets nothing more.
        link.drain(1)
        await pair.until(link, lambda: link.credit == 0, "unused credit was not given back")
        if len(link.deliveries) > 2:
            wrong = "an accepted message was delivered again"
        self._count(link)
        return TimedStep(began, two.at - began, wrong)

    async def _returned(
        self, pair: Amqp10Pair, give_back: Callable[[Amqp10Receiver, Received], float], count: int | None
    ) -> TimedStep:
        """Give a message back. It must be delivered again; `count` is its delivery count, None for any."""
        (number,) = await self._publish(pair, 1)
        link = await pair.receiver(self._queue, 1)
        held = await pair.delivery(link, 1, "the message")
        began = give_back(link, held)
        link.ask(1)
        again = await pair.delivery(link, 2, "the message that was given back")
        link.accept(again)
        wrong = wrong_order(link.deliveries, [number, number])
        if count is not None:
            wrong = wrong or wrong_counts(link.deliveries, [0, count])
        self._count(link)
        return TimedStep(began, again.at - began, wrong)

    async def _dead_letter(self, pair: Amqp10Pair, refuse: Callable[[Amqp10Receiver, Received], float]) -> TimedStep:
        (number,) = await self._publish(pair, 1)
        link, dead_link = await pair.receiver(self._queue, 1), await pair.receiver(self._dead, 1)
        held = await pair.delivery(link, 1, "the message")
        began = refuse(link, held)
        dead = await pair.delivery(dead_link, 1, "the dead letter")
        dead_link.accept(dead)
        wrong = wrong_order(dead_link.deliveries, [number]) or wrong_death(dead, self._queue)
        self._count(link)
        self._count(dead_link)
        return TimedStep(began, dead.at - began, wrong)

    async def _credit(self, pair: Amqp10Pair) -> TimedStep:
        await self._publish(pair, 3)
        link = await pair.receiver(self._queue, 2)
        await pair.delivery(link, 2, "the second message")
        # A round trip to the queue, in which a message beyond the credit would arrive.
        await pair.channel.look(self._queue)
        over = len(link.deliveries)
        began = link.ask(1)
        third = await pair.delivery(link, 3, "the message for one more credit")
        for received in link.deliveries:
            link.accept(received)
        self._count(link)
        wrong = None if over == 2 else f"the broker sent {over} messages for a credit of 2"
        return TimedStep(began, third.at - began, wrong)

    async def _drain(self, pair: Amqp10Pair) -> TimedStep:
        link = await pair.receiver(self._queue, 0)
        began = link.drain(5)
        await pair.until(link, lambda: link.credit == 0, "unused credit was not given back")
        at = link.flowed_at
        self._count(link)
        left = len(link.deliveries)
        return TimedStep(began, at - began, f"{left} messages came from an empty queue" if left else None)

    async def _link_close(self, pair: Amqp10Pair) -> TimedStep:
        (number,) = await self._publish(pair, 1)
        holder = await pair.receiver(self._queue, 1)
        await pair.delivery(holder, 1, "the message")
        other = await pair.receiver(self._queue, 1)
        began = asyncio.get_running_loop().time()
        holder.detach()
        return await self._again(pair, other, number, began)

    async def _connection_loss(self, pair: Amqp10Pair) -> TimedStep:
        (number,) = await self._publish(pair, 1)
        third = await pair.third()
        try:
            holder = await pair.receiver(self._queue, 1, third)
            await pair.delivery(holder, 1, "the message", third)
            other = await pair.receiver(self._queue, 1)
            began = asyncio.get_running_loop().time()
        finally:
            third.cut()
        return await self._again(pair, other, number, began)

    async def _queue_deleted(self, pair: Amqp10Pair) -> TimedStep:
        await pair.channel.declare(self._brief.name, durable=True, arguments=self._brief.arguments)
        link = await pair.receiver(self._brief.name, 1)
        began = asyncio.get_running_loop().time()
        await pair.channel.delete(self._brief.name)
        await pair.until(link, lambda: link.ended is not None, "the link to a deleted queue was not detached")
        condition = "" if link.ended is None else link.ended.condition
        wrong = None if condition == _DELETED else f"the link was detached with {condition or 'no reason'}"
        return TimedStep(began, max(0.0, link.ended_at - began), wrong)

    async def _publish(self, pair: Amqp10Pair, count: int) -> Sequence[int]:
        numbers = range(self._sent + 1, self._sent + count + 1)
        self._sent += count
        writer = PayloadWriter(self._context.run_id, self._epoch, _BYTES)
        await pair.publish(self._queue, [writer.write(number) for number in numbers])
        return numbers

    async def _again(self, pair: Amqp10Pair, link: Amqp10Receiver, number: int, began: float) -> TimedStep:
        again = await pair.delivery(link, 1, "the message that another link held")
        link.accept(again)
        self._count(link)
        wrong = wrong_order(link.deliveries, [number])
        if again.first_acquirer and self._queue_type == "quorum":
            wrong = wrong or "the message is marked as never delivered before (first-acquirer)"
        return TimedStep(began, again.at - began, wrong)

    def _count(self, link: Amqp10Receiver) -> None:
        counts = self.stats.deliveries or DeliveryCounts()
        again = sum(not received.first_acquirer for received in link.deliveries)
        self.stats.deliveries = counts._replace(redeliveries=(counts.redeliveries or 0) + again)

    @staticmethod
    def _release(link: Amqp10Receiver, held: Received) -> float:
        return link.release(held)

    @staticmethod
    def _modify(link: Amqp10Receiver, held: Received) -> float:
        return link.modify(held, failed=True)

    @staticmethod
    def _undeliverable(link: Amqp10Receiver, held: Received) -> float:
        return link.modify(held, undeliverable=True)


def _number(received: Received) -> int:
    mark = read(received.body)
    return -1 if mark is None else mark.seq


def wrong_order(received: Sequence[Received], expected: Sequence[int]) -> str | None:
    """Return the error text for deliveries that are not these messages in this order; None if they are."""
    came = [_number(each) for each in received]
    if came == list(expected):
        return None
    first = min((number for number in (*came, *expected) if number > 0), default=1) - 1
    words = [", ".join(str(number - first) for number in numbers) or "nothing" for numbers in (came, expected)]
    return f"received message {words[0]}, expected {words[1]}"


def wrong_counts(received: Sequence[Received], expected: Sequence[int]) -> str | None:
    """Return the error text for delivery counts that differ from these; None if they do not."""
    counts = [each.delivery_count for each in received]
    if counts == list(expected):
        return None
    return f"delivery-count is {', '.join(map(str, counts))}, expected {', '.join(map(str, expected))}"


def wrong_death(dead: Received, queue: str) -> str | None:
    """Return the error text for the annotation x-opt-deaths of a message refused once in `queue`; None if correct."""
    deaths = dead.annotations.get("x-opt-deaths")
    entries = list(deaths) if deaths is not None else []
    if len(entries) != 1 or not isinstance(entries[0], dict):
        return "the dead letter has no annotation x-opt-deaths with one entry"
    entry = {str(key): value for key, value in entries[0].items()}
    for key, value in {"queue": queue, "reason": "rejected", "count": 1}.items():
        if entry.get(key) != value:
            return f"x-opt-deaths of the dead letter: {key} is {entry.get(key)!r}, expected {value!r}"
    return None


def streams(settings: OutcomesSettings, context: StreamContext) -> list[ProbeStream]:
    """Create one stream for each queue type."""
    return [OutcomesStream(context, settings, kind) for kind in dict.fromkeys(settings.queue_types)]

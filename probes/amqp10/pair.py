"""The connections of the outcomes probe: one only publishes and one only consumes, both over AMQP 1.0.

A third one, over AMQP 0-9-1, declares, empties and deletes the queues.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from probes.amqp10.connection import Amqp10Connection, queue_address
from probes.amqp10.links import Amqp10Receiver, Amqp10Sender, Received, Settlement
from probes.amqp10.publisher import BLOCKED_AFTER, NO_CREDIT, WINDOW_CLOSED, refuse_old
from probes.amqp_errors import shared
from probes.publisher_consumer import PublisherBlocked, StepFailed
from probes.queues import QueueSpec
from probes.settings import AmqpServer
from probes.verify.channel import RawChannel
from probes.verify.client import Client

_LOOK = 0.2


class Amqp10Pair:
    """The open connections; made by `Amqp10Pair.open`.

    Attributes:
        channel: for the declarations.
        product: product and version of the broker, such as "RabbitMQ 4.3.6".
    """

    def __init__(self, server: AmqpServer, name: str, within: float, helper: Client, channel: RawChannel) -> None:
        self._server, self._name, self._within, self._helper = server, name, within, helper
        self._connections: list[Amqp10Connection] = []
        self._senders: dict[str, Amqp10Sender] = {}
        self._receivers: list[Amqp10Receiver] = []
        self.channel, self.product = channel, helper.product

    @classmethod
    async def open(cls, server: AmqpServer, name: str, within: float) -> Self:
        """Open all connections; `within` is the timeout of each step in seconds.

        Raises:
            BrokerError: a connection failed; `Unsupported` if this broker does not speak AMQP 1.0.
            MissingPart: the library is not installed.
        """
        helper = await Client.open(server, f"{name} (declares its queues)")
        try:
            refuse_old(helper.product, server)
            pair = cls(server, name, within, helper, await helper.channel())
        except BaseException:
            await helper.close()
            raise
        try:
            for _ in range(2):
                pair._connections.append(await Amqp10Connection.open(server, name))
        except BaseException:
            await pair.close()
            raise
        return pair

    @property
    def blocked(self) -> str | None:
        """What the broker does to publishers; None while it takes messages."""
        waiting = [sender for sender in self._senders.values() if sender.credit <= 0]
        if not waiting:
            return None
        return WINDOW_CLOSED if any(sender.raw.queued > 0 for sender in waiting) else NO_CREDIT

    async def third(self) -> Amqp10Connection:
        """Open another connection, which the probe will cut."""
        return await Amqp10Connection.open(self._server, f"{self._name} (closed on purpose)")

    async def renew(self) -> None:
        """Detach every consumer, which requeues what it holds."""
        receivers, self._receivers = self._receivers, []
        for receiver in receivers:
            await self._connections[1].detach(receiver)

    async def ready(self, queues: Sequence[QueueSpec]) -> None:
        """Make sure that the queues exist, are empty and have no other consumer.

        Raises:
            Refused: another client consumes from one of them.
            PublisherBlocked: the broker blocks publishers.
            StepFailed: messages of an interrupted round have no outcome.
        """
        await self._until(
            self._connections[0],
            lambda: all(not sender.raw.unsettled for sender in self._senders.values()),
            "messages published before the block have no outcome",
        )
        for queue in queues:
            found = await self.channel.declare(queue.name, durable=True, arguments=queue.arguments)
            if found.consumers:
                raise shared(self._server, f"consuming from queue {queue.name!r}")
            while found.messages and await self.channel.get(queue.name, auto_ack=True) is not None:
                continue  # discard messages of an interrupted round
        self.channel.log.clear()

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> None:
        """Publish and wait until all messages are accepted.

        Raises:
            PublisherBlocked: the broker blocks publishers.
            StepFailed: a message has another outcome, or none.
        """
        connection = self._connections[0]
        sender = self._senders.get(queue)
        if sender is None or sender.ended is not None:
            sender = await connection.sender(queue_address(queue))
            await connection.until(lambda: sender.credit > 0, BLOCKED_AFTER)
            self._senders[queue] = sender
        sender.answers.clear()
        for body in bodies:
            if self.blocked is not None:
                raise PublisherBlocked
            sender.send(connection.encode(body, durable=True))
        what = f"{len(bodies)} messages have no outcome"
        await self._until(connection, lambda: len(sender.answers) >= len(bodies), what)
        other = {answer.settlement.value for answer in sender.answers} - {Settlement.ACCEPTED.value}
        if other:
            raise StepFailed(f"the broker settled a message as {', '.join(sorted(other))}")

    async def receiver(self, queue: str, credit: int, connection: Amqp10Connection | None = None) -> Amqp10Receiver:
        """Attach a consumer with so much credit."""
        receiver = await (connection or self._connections[1]).receiver(queue_address(queue), credit=credit)
        if connection is None:
            self._receivers.append(receiver)
        return receiver

    async def delivery(
        self, receiver: Amqp10Receiver, number: int, what: str, connection: Amqp10Connection | None = None
    ) -> Received:
        """Wait for the delivery with this number, from 1.

        Raises:
            PublisherBlocked: the broker blocks publishers.
            StepFailed: it did not arrive in time, or the link ended.
        """
        await self.until(receiver, lambda: len(receiver.deliveries) >= number, f"{what} was not delivered", connection)
        return receiver.deliveries[number - 1]

    async def until(
        self, receiver: Amqp10Receiver, done: Callable[[], bool], what: str, connection: Amqp10Connection | None = None
    ) -> None:
        """Wait for a condition on a link that consumes. Raises as `delivery`."""

        def over() -> bool:
            return done() or receiver.ended is not None

        await self._until(connection or self._connections[1], over, what)
        if not done():
            raise StepFailed(f"the broker ended the link ({receiver.ended})")

    async def close(self) -> None:
        """Close all connections in order."""
        await asyncio.gather(self._helper.close(), *(connection.close() for connection in self._connections))

    async def _until(self, connection: Amqp10Connection, done: Callable[[], bool], what: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._within
        while not await connection.until(done, min(_LOOK, max(0.0, deadline - loop.time()))):
            if connection.closed.done():
                raise connection.closed.result()
            if self.blocked is not None:
                raise PublisherBlocked
            if loop.time() >= deadline:
                raise StepFailed(f"{what} within {self._within:g} s")

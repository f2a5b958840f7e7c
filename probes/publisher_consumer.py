"""The two connections of a scripted probe: one only publishes, the other only consumes.

A broker that blocks publishers reads nothing from a publishing connection, so acks on it would be blocked too.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from probes.amqp_errors import shared
from probes.queues import QueueSpec
from probes.settings import AmqpServer
from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frames import Confirm, Delivery

_LOOK = 0.2


class PublisherBlocked(Exception):
    """The broker blocks publishers. The round is abandoned and does not count as a failure."""


class StepFailed(Exception):
    """A step failed; the message says why."""


class PublisherConsumerPair:
    """Two connections, each with a channel; made by `PublisherConsumerPair.open`.

    Attributes:
        sender: the publishing channel, in confirm mode.
        taker: the consuming channel.
        product: product and version of the broker, such as "RabbitMQ 4.3.6".
    """

    def __init__(self, server: AmqpServer, name: str, within: float, clients: tuple[Client, Client]) -> None:
        self._server, self._name, self._within = server, name, within
        self._publishing, self._consuming = clients
        self.product = clients[0].product
        self._first = 1
        """Number of the first message of the latest publish; earlier ones are settled."""
        self.sender: RawChannel
        self.taker: RawChannel

    @classmethod
    async def open(cls, server: AmqpServer, name: str, within: float) -> Self:
        """Open both connections; `within` is the timeout of each step in seconds.

        Raises:
            BrokerError: a connection failed; the message says why.
        """
        first = await Client.open(server, name)
        try:
            pair = cls(server, name, within, (first, await Client.open(server, name)))
        except BaseException:
            await first.close()
            raise
        pair.sender = await first.channel()
        await pair.sender.confirm_select()
        pair.taker = await pair.new_channel()
        return pair

    @property
    def blocked(self) -> str | None:
        """Reason why the broker blocks publishers; None while it does not."""
        return self._publishing.blocked

    async def new_channel(self) -> RawChannel:
        """Open another consuming channel on the same connection."""
        return await self._consuming.channel()

    async def renew(self) -> None:
        """Replace the consuming channel, which requeues its unacked messages and ends its consumers."""
        await self.taker.close()
        self.taker = await self.new_channel()

    async def third(self) -> Client:
        """Open a third connection, which the probe will cut."""
        return await Client.open(self._server, f"{self._name} (closed on purpose)")

    async def ready(self, queues: Sequence[QueueSpec]) -> None:
        """Make sure that the queues exist, are empty and have no other consumer.

        Raises:
            Refused: another client consumes from one of them.
            PublisherBlocked: the broker blocks publishers.
            StepFailed: messages of an interrupted round were not confirmed.
        """
        # The broker reads messages that were in flight at a block later. They would mix with those of this round.
        await self.until(
            self.sender,
            self._settled,
            "messages published before the block were not confirmed",
            within=self._within,
        )
        for queue in queues:
            found = await self.taker.declare(queue.name, durable=True, arguments=queue.arguments)
            if found.consumers:
                raise shared(self._server, f"consuming from queue {queue.name!r}")
            while found.messages and await self.taker.get(queue.name, auto_ack=True) is not None:
                continue  # discard messages of an interrupted round

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> None:
        """Publish and wait until all messages are confirmed.

        Raises:
            PublisherBlocked: the broker blocks publishers.
            StepFailed: not all were confirmed.
        """
        channel = self.sender
        channel.log.clear()
        self._first = channel.published + 1
        for body in bodies:
            if self.blocked is not None:
                raise PublisherBlocked
            channel.publish(queue, body)
        await self.until(channel, self._settled, f"{len(bodies)} messages were not confirmed", within=self._within)
        if any(confirm.nacked for confirm in channel.frames(Confirm)):
            raise StepFailed("the broker nacked a message (basic.nack)")

    async def delivery(self, channel: RawChannel, number: int, what: str) -> Delivery:
        """Wait for the delivery with this number (from 1) since the log of the channel was cleared.

        Raises:
            PublisherBlocked: the broker blocks publishers.
            StepFailed: it did not arrive in time.
        """
        await self.until(
            channel,
            lambda: len(channel.frames(Delivery)) >= number,
            f"{what} was not delivered",
            within=self._within,
        )
        return channel.frames(Delivery)[number - 1]

    async def until(self, channel: RawChannel, done: Callable[[], bool], what: str, *, within: float) -> None:
        """Wait for a condition on a channel.

        Raises:
            PublisherBlocked: the broker blocks publishers.
            StepFailed: timed out; `what` is the reason.
            Closed: the channel or its connection ended.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while not await channel.until(done, within=min(_LOOK, max(0.0, deadline - loop.time()))):
            if self.blocked is not None:
                raise PublisherBlocked
            if channel.closed.done():
                raise channel.closed.result()
            if loop.time() >= deadline:
                raise StepFailed(f"{what} within {within:g} s")

    async def close(self) -> None:
        """Close both connections in order."""
        await asyncio.gather(self._publishing.close(), self._consuming.close())

    def _settled(self) -> bool:
        first, confirms = self._first, self.sender.frames(Confirm)
        last = max((confirm.tag for confirm in confirms if confirm.multiple), default=first - 1)
        done = {*range(first, last + 1), *(confirm.tag for confirm in confirms)}
        return done >= set(range(first, self.sender.published + 1))

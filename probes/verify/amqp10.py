"""The ground of claims about AMQP 1.0: a connection of it, and a channel of AMQP 0-9-1 that declares and inspects."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ackscope.errors import MissingPart
from probes.amqp10.connection import Amqp10Connection, library, queue_address
from probes.amqp10.links import Amqp10Receiver, Amqp10Sender, PublishOutcome, Received
from probes.verify.channel import RawChannel
from probes.verify.fixtures import SOON
from probes.verify.verify_claim import Check, CheckContext, ClaimVerdict, Observed

FIRST_VERSION = (4, 0, 0)
GROUP = "amqp10"


@dataclass(frozen=True, slots=True)
class Amqp10Ground:
    """What a check works with.

    Attributes:
        link: the connection over AMQP 1.0.
        channel: the channel over AMQP 0-9-1.
    """

    context: CheckContext
    link: Amqp10Connection
    channel: RawChannel

    async def queue(self, name: str, queue_type: str = "quorum", arguments: Mapping[str, object] | None = None) -> str:
        """Declare a queue that is deleted at the end; see `CheckContext.queue`."""
        return await self.context.queue(self.channel, name, queue_type, arguments)

    async def sender(self, queue: str | None, **mode: bool) -> Amqp10Sender:
        """Attach a publisher to a queue; None for the anonymous terminus."""
        sender = await self.link.sender(None if queue is None else queue_address(queue), **mode)
        await self.link.until(lambda: sender.credit > 0, SOON)
        return sender

    async def publish(self, sender: Amqp10Sender, *bodies: bytes, **fields: Any) -> list[PublishOutcome]:
        """Publish messages and wait for their outcomes. Returns those that arrived."""
        sender.answers.clear()
        for body in bodies:
            sender.send(self.link.encode(body, **{"durable": True, **fields}))
        await self.link.until(lambda: len(sender.answers) >= len(bodies), SOON)
        return list(sender.answers)

    async def fill(self, queue: str, count: int, **fields: Any) -> None:
        """Publish messages 0, 1, 2 ... to a queue, and wait until all are accepted.

        Raises:
            TimeoutError: not all were accepted.
        """
        sender = await self.sender(queue)
        answers = await self.publish(sender, *(str(number).encode() for number in range(count)), **fields)
        if [answer.settlement.value for answer in answers] != ["accepted"] * count:
            raise TimeoutError(f"{count} messages to {queue} were not all accepted")
        await self.link.detach(sender)

    async def consume(self, queue: str, credit: int = 0, link: Amqp10Connection | None = None) -> Amqp10Receiver:
        """Attach a consumer with so much credit."""
        return await (link or self.link).receiver(queue_address(queue), credit=credit)

    async def deliveries(self, receiver: Amqp10Receiver, count: int, within: float = SOON) -> list[Received]:
        """Wait for `count` deliveries in total. Returns all of them, even if they are fewer."""
        await self.link.until(lambda: len(receiver.deliveries) >= count or receiver.ended is not None, within)
        return receiver.deliveries

    async def used_up(self, receiver: Amqp10Receiver) -> bool:
        """Wait until a consumer has no credit left. Returns whether that was in time."""
        return await self.link.until(lambda: receiver.credit == 0)

    async def settled_so_far(self, receiver: Amqp10Receiver) -> None:
        """Wait until the broker has processed everything sent on a link: it answers a drain after that."""
        receiver.drain(1)
        await self.used_up(receiver)


Amqp10Check = Callable[[Amqp10Ground], Awaitable[Observed]]


@asynccontextmanager
async def _ground(context: CheckContext, name: str) -> AsyncIterator[Amqp10Ground]:
    async with await context.client(name) as client:
        link = await Amqp10Connection.open(context.server, f"ackscope-verify {name}")
        try:
            yield Amqp10Ground(context, link, await client.channel())
        finally:
            await link.close()


def check_of(name: str, check: Amqp10Check, since: Sequence[int] = FIRST_VERSION) -> Check:
    """Return the check of a claim that is about AMQP 1.0, from a version of the broker on."""

    async def run(context: CheckContext) -> Observed:
        if context.version < tuple(since):
            first = ".".join(map(str, since[:2]))
            running = ".".join(map(str, context.version))
            return _not_applicable(f"this is about RabbitMQ {first} and later", f"the broker is RabbitMQ {running}")
        try:
            library()
        except MissingPart as error:
            return _not_applicable(f"not checked: {error}", "there is no module proton")
        async with _ground(context, name) as ground:
            return await check(ground)

    return run


def verdict(*, holds: bool, so: str, otherwise: str, evidence: Sequence[str], because: str = "") -> Observed:
    """Return the result of a check; `because` explains a difference."""
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=so if holds else otherwise,
        evidence=tuple(evidence),
        because="" if holds else because,
    )


def _not_applicable(why: str, evidence: str) -> Observed:
    return Observed(verdict=ClaimVerdict.NOT_APPLICABLE, observed=why, evidence=(evidence,))

"""Messages to check claims with: put into a queue, and counted there."""

import asyncio
import time

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frames import Delivery

_EVERY = 0.02
_QUIET = 0.3
"""Seconds without a further delivery that show that none comes; with room it takes milliseconds."""
SOON = 5.0
"""Seconds for what a broker does by itself within milliseconds."""


async def fill(client: Client, queue: str, count: int, *, size: int = 0) -> None:
    """Put persistent messages 0, 1, 2 ... into a queue, on a channel of its own; all are confirmed.

    Args:
        client: whose connection.
        queue: its name.
        count: how many.
        size: bytes of each body, filled up with dots; 0: as long as the number.

    Raises:
        TimeoutError: not all were confirmed.
        Closed: the broker refused them.
    """
    channel = await client.channel()
    await channel.confirm_select()
    for number in range(count):
        channel.publish(queue, str(number).encode().ljust(size, b"."))
    if not await channel.settled():
        if channel.closed.done():
            raise channel.closed.result()
        raise TimeoutError(f"{count} messages to {queue} were not all confirmed")
    await channel.close()


async def ready(channel: RawChannel, queue: str, count: int, within: float = SOON) -> int:
    """Messages ready in a queue: `count` as soon as they are so many, else how many there are in the end."""
    deadline = time.monotonic() + within
    while True:
        found = (await channel.look(queue)).messages
        if found == count or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_EVERY)


async def ready_after(channel: RawChannel, queue: str, count: int, within: float = SOON) -> float | None:
    """Seconds until a queue holds `count` ready messages; None when it does not in time."""
    began = time.monotonic()
    return time.monotonic() - began if await ready(channel, queue, count, within) == count else None


async def since(channel: RawChannel, seen: int, within: float = SOON) -> list[Delivery]:
    """What came after the first `seen` frames of a channel that only consumes, without looking at those again."""
    await channel.until(lambda: len(channel.log) > seen, within)
    return [item for item in channel.log[seen:] if isinstance(item, Delivery)]


async def quiet(*channels: RawChannel) -> list[int]:
    """How many each channel has received, once nothing more has come for a while."""
    before: list[int] = []
    while (now := [len(channel.frames(Delivery)) for channel in channels]) != before:
        before = now
        await asyncio.sleep(_QUIET)
    return now


def numbers(deliveries: list[Delivery]) -> list[int]:
    """Which messages came, in their order."""
    return [int(item.body.rstrip(b".")) for item in deliveries]


def flags(deliveries: list[Delivery]) -> str:
    """Their redelivered flags in words."""
    marked = sum(item.redelivered for item in deliveries)
    return f"redelivered false on {len(deliveries) - marked}, true on {marked}"

"""Test messages for claims: publish them into a queue, and count them."""

import asyncio
import time

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frames import Delivery

_EVERY = 0.02
_QUIET = 0.3
"""Seconds without a delivery after which none is expected. Below the prefetch limit one takes milliseconds."""
SOON = 5.0
"""Timeout in seconds for actions that take a broker milliseconds."""


async def fill(client: Client, queue: str, count: int, *, size: int = 0) -> None:
    """Publish persistent messages 0, 1, 2 ... to a queue on a separate channel, and wait for all confirms.

    Args:
        client: the connection to use.
        queue: name of the queue.
        count: number of messages.
        size: bytes of each body, padded with dots; 0 for no padding.

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
    """Wait for `count` ready messages in a queue. Returns the number of ready messages."""
    deadline = time.monotonic() + within
    while True:
        found = (await channel.look(queue)).messages
        if found == count or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_EVERY)


async def ready_after(channel: RawChannel, queue: str, count: int, within: float = SOON) -> float | None:
    """Return the seconds until a queue has `count` ready messages; None if timed out."""
    began = time.monotonic()
    return time.monotonic() - began if await ready(channel, queue, count, within) == count else None


async def since(channel: RawChannel, seen: int, within: float = SOON) -> list[Delivery]:
    """Wait for a delivery after the first `seen` frames of a consuming channel. Returns all of these deliveries."""
    await channel.until(lambda: len(channel.log) > seen, within)
    return [item for item in channel.log[seen:] if isinstance(item, Delivery)]


async def quiet(*channels: RawChannel) -> list[int]:
    """Wait until no more deliveries arrive. Returns the number of deliveries of each channel."""
    before: list[int] = []
    while (now := [len(channel.frames(Delivery)) for channel in channels]) != before:
        before = now
        await asyncio.sleep(_QUIET)
    return now


def numbers(deliveries: list[Delivery]) -> list[int]:
    """Return the numbers of the delivered messages, in order."""
    return [int(item.body.rstrip(b".")) for item in deliveries]


def flags(deliveries: list[Delivery]) -> str:
    """Describe the redelivered flags as text."""
    marked = sum(item.redelivered for item in deliveries)
    return f"redelivered false on {len(deliveries) - marked}, true on {marked}"

"""Measures rates and latencies of publishing strategies. Only for claims, never for continuous probes."""

import asyncio
import time

from pika import spec

from probes.verify.channel import RawChannel
from probes.verify.frame_counters import FrameCounters

BOUND = {"x-max-length": 50_000}
"""Length limit of every queue under load; not reached within a few seconds."""

_WINDOW = 500
_LATE = 30.0
"""Time limit in seconds for the last confirms."""


async def one_by_one(
    channel: RawChannel, queue: str, count: int, *, persistent: bool = True, body: bytes = b"x"
) -> list[float]:
    """Publish `count` messages and wait for each confirm. Returns the seconds until each confirm.

    Raises:
        TimeoutError: a message was not confirmed.
    """
    tally, sent = FrameCounters(), {}
    tally.update(channel.log)
    for _ in range(count):
        at = time.monotonic()
        number = channel.publish(queue, body, persistent=persistent)
        sent[number] = at
        await _settled(channel, tally, number)
    return tally.latencies(sent)


async def paced(channel: RawChannel, queue: str, *, rate: float, seconds: float, body: bytes = b"x") -> list[float]:
    """Publish at a constant rate, independent of confirms. Returns the seconds from each publish to its confirm."""
    tally, sent = FrameCounters(), {}
    tally.update(channel.log)
    began = time.monotonic()
    for index in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + index / rate - time.monotonic()))
        at = time.monotonic()
        sent[channel.publish(queue, body)] = at
    await _settled(channel, tally, channel.published)
    return tally.latencies(sent)


async def individually(channel: RawChannel, queue: str, seconds: float) -> float:
    """Return messages per second if the publisher waits for each confirm."""
    return await batched(channel, queue, seconds, 1)


async def batched(channel: RawChannel, queue: str, seconds: float, size: int) -> float:
    """Return messages per second if the publisher sends batches of `size` and waits for each batch."""
    tally, first, began = FrameCounters(), channel.published, time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(size):
            channel.publish(queue)
        await _settled(channel, tally, channel.published)
    return (channel.published - first) / (time.monotonic() - began)


async def asynchronously(channel: RawChannel, queue: str, seconds: float) -> float:
    """Return messages per second if the publisher does not wait, with at most 500 outstanding messages."""
    tally, first, began = FrameCounters(), channel.published, time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(_WINDOW - (channel.published - tally.settled)):
            channel.publish(queue)
        await _settled(channel, tally, channel.published - _WINDOW + 50)
    await _settled(channel, tally, channel.published)
    return (channel.published - first) / (time.monotonic() - began)


async def committed(channel: RawChannel, queue: str, seconds: float) -> float:
    """Return messages per second on a transactional channel with a commit per message."""
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        channel.publish(queue)
        await channel.call(spec.Tx.Commit(), spec.Tx.CommitOk)
        count += 1
    return count / (time.monotonic() - began)


async def _settled(channel: RawChannel, tally: FrameCounters, count: int) -> None:
    if not await channel.until(lambda: tally.update(channel.log) >= count, _LATE):
        raise TimeoutError(f"{count - tally.settled} messages neither acked nor nacked within {_LATE:g} s")

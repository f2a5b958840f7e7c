"""Publishing strategies with their rates and latencies: only for claims, never for continuous probes."""

import asyncio
import time

from pika import spec

from probes.verify.channel import RawChannel
from probes.verify.frame_counters import FrameCounters

BOUND = {"x-max-length": 50_000}
"""Length limit of every queue under load; not reached within a few seconds."""

_WINDOW = 500
_LATE = 30.0
"""Seconds that the last confirms may take."""


async def one_by_one(
    channel: RawChannel, queue: str, count: int, *, persistent: bool = True, body: bytes = b"x"
) -> list[float]:
    """Publish and wait, `count` times; returns the seconds until each confirm.

    Raises:
        TimeoutError: one was not confirmed.
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
    """Publish at a constant rate, independent of confirms; returns the seconds from each publish to its confirm."""
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
    """Messages per second when each is waited for."""
    return await batched(channel, queue, seconds, 1)


async def batched(channel: RawChannel, queue: str, seconds: float, size: int) -> float:
    """Messages per second when `size` are sent and then waited for."""
    tally, first, began = FrameCounters(), channel.published, time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(size):
            channel.publish(queue)
        await _settled(channel, tally, channel.published)
    return (channel.published - first) / (time.monotonic() - began)


async def asynchronously(channel: RawChannel, queue: str, seconds: float) -> float:
    """Messages per second when the next is sent while confirms come, with 500 outstanding at most."""
    tally, first, began = FrameCounters(), channel.published, time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(_WINDOW - (channel.published - tally.settled)):
            channel.publish(queue)
        await _settled(channel, tally, channel.published - _WINDOW + 50)
    await _settled(channel, tally, channel.published)
    return (channel.published - first) / (time.monotonic() - began)


async def committed(channel: RawChannel, queue: str, seconds: float) -> float:
    """Messages per second on a transactional channel that commits each."""
    count, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        channel.publish(queue)
        await channel.call(spec.Tx.Commit(), spec.Tx.CommitOk)
        count += 1
    return count / (time.monotonic() - began)


async def _settled(channel: RawChannel, tally: FrameCounters, count: int) -> None:
    if not await channel.until(lambda: tally.update(channel.log) >= count, _LATE):
        raise TimeoutError(f"{count - tally.settled} messages neither acked nor nacked within {_LATE:g} s")

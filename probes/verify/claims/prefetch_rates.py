"""Claim about the throughput of one consumer at several prefetch values."""

import asyncio
import time

from probes.verify.client import Client
from probes.verify.fixtures import fill, ready
from probes.verify.frames import Delivery
from probes.verify.sources import CONFIRMS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_STEPS = (1, 10, 100, 1000, 0)
_AWAY = 0.005
"""Seconds from a delivery to its ack. They simulate a round trip, so that the curve is visible on loopback too."""
_TICK = 0.001
_SECONDS = 0.6
_MOST = 4000
"""Maximum number of messages of one step. The rate of a fast step is known well before."""


async def curve(ground: CheckContext) -> Observed:
    """Check claim S21."""
    rates, held = {}, {}
    async with await ground.client("S21") as client, await ground.client("S21 consumer") as consumer:
        watcher = await client.channel()
        queue = await ground.queue(watcher, "s21", arguments={"x-max-length": 2 * _MOST})
        for prefetch in _STEPS:
            await fill(client, queue, _MOST - await ready(watcher, queue, _MOST, 0.2))
            rates[prefetch], held[prefetch] = await _consumed(consumer, queue, prefetch)
    ten, hundred, thousand = (rates[prefetch] / rates[1] for prefetch in (10, 100, 1000))
    holds = ten > 2 and hundred > ten and thousand / hundred < hundred / ten and held[0] > 1000
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"prefetch 10 reaches {ten:.1f} times the rate of 1, 100 {hundred:.1f} times, 1000 {thousand:.1f} "
        f"times; without a limit the consumer held up to {held[0]}",
        evidence=(
            f"one consumer, each message acked {1000 * _AWAY:g} ms after it came, as with so long a round trip",
            *(
                f"prefetch {prefetch or 'unlimited'}: {rate:.0f} messages/s, at most {held[prefetch]} held"
                for prefetch, rate in rates.items()
            ),
            "the curve bends near the round trip divided by the time between messages at full speed",
            "which value is best depends on both: the prefetch probe measures it for a given processing time",
        ),
    )


async def _consumed(client: Client, queue: str, prefetch: int) -> tuple[float, int]:
    """Consume with a prefetch and ack each message after `_AWAY` s.

    Returns messages per second and the largest number of unacked messages.
    """
    channel = await client.channel()
    await channel.qos(prefetch)
    done, most, began = 0, 0, time.monotonic()
    await channel.consume(queue)
    while done < _MOST and time.monotonic() - began < _SECONDS:
        await asyncio.sleep(_TICK)
        most = max(most, len(channel.log) - done)
        due = time.monotonic() - _AWAY
        while done < len(channel.log):
            item = channel.log[done]
            if not isinstance(item, Delivery) or item.at > due:
                break
            channel.ack(item.tag)
            done += 1
    rate = done / (time.monotonic() - began)
    await channel.close()
    return rate, most


CLAIMS = (
    VerifyClaim(
        id="S21",
        name="prefetch-throughput",
        group="prefetch",
        documented="Throughput grows with prefetch, with diminishing returns; 100 to 300 is usually best, 1 the most "
        "conservative, unlimited a risk for memory.",
        source=CONFIRMS,
        check=curve,
        alone=True,
    ),
)

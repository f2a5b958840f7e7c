"""Claims about lost connections: lost messages, duplicates after republishing, and heartbeats."""

import asyncio
import time
from collections import Counter

from ackscope.errors import BrokerError
from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frame_counters import tallied
from probes.verify.frames import Delivery
from probes.verify.relay import Relay
from probes.verify.requests import filled
from probes.verify.sources import RELIABILITY
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_HEARTBEAT = 2
"""Heartbeat in seconds. With a shorter one, a busy machine could not tell two from three intervals."""

_PHASES = 4
"""Number of connections of different age that are cut at once.

The broker checks once per interval, which starts when a connection opens.
"""


async def in_transit(ground: CheckContext) -> Observed:
    """Check claim S46."""
    many, large = 400, bytes(1000)
    async with await Relay.open(ground.server) as relay, await ground.client("S46 watcher") as other:
        unfit = await _unfit(ground, relay)
        if unfit is not None:
            return unfit
        watcher = await other.channel()
        relayed, cut = await ground.queue(watcher, "s46"), await ground.queue(watcher, "s46.cut")
        client = await _relayed(ground, relay, "S46")
        channel = await client.channel()
        for number in range(many):
            if number == many // 2:
                await filled(watcher, relayed, many // 2)
                relay.pause()
            channel.publish(relayed, large)
        await asyncio.sleep(0.1)
        open_still = not client.closed.done()
        await relay.cut()
        client.cut()
        client = await ground.client("S46 cut")
        channel = await client.channel()
        for _ in range(many):
            channel.publish(cut, large)
        client.cut()
        await asyncio.sleep(0.3)
        arrived, straight = (await watcher.look(relayed)).messages, (await watcher.look(cut)).messages
        twice = await _redelivered(ground, watcher, relayed)
    holds = arrived < many and open_still and twice
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"without confirms {many - arrived} of {many} messages were lost and nobody was told; without its "
        "acknowledgement a message that was processed came again"
        if holds
        else "nothing was lost on the way, or nothing came twice",
        evidence=(
            f"{many} messages without confirms, the network silent after half of them, then cut: {arrived} arrived",
            "the publisher had no error before the cut",
            f"{many} more, the client's own socket cut right after the last: {straight} arrived",
            f"a message got, its consumer cut before the ack: {'came again, marked redelivered' if twice else 'lost'}",
        ),
    )


async def republish(ground: CheckContext) -> Observed:
    """Check claim S47."""
    async with await Relay.open(ground.server) as relay, await ground.client("S47 after") as other:
        unfit = await _unfit(ground, relay)
        if unfit is not None:
            return unfit
        second, drain = await other.channel(), await other.channel()
        queue = await ground.queue(second, "s47")
        client = await _relayed(ground, relay, "S47")
        channel = await client.channel()
        await channel.confirm_select()
        _numbered(channel, queue, 100)
        await channel.settled()
        relay.pause(upstream=False)
        _numbered(channel, queue, 100)
        await filled(second, queue, 200)
        relay.pause()
        _numbered(channel, queue, 50)
        await asyncio.sleep(0.1)
        await relay.cut()
        client.cut()
        confirmed = tallied(channel.log).acked
        unconfirmed = sorted(set(range(1, channel.published + 1)) - confirmed)
        await second.confirm_select()
        for number in unconfirmed:
            second.publish(queue, b"%d" % number)
        settled = await second.settled()
        total = (await second.look(queue)).messages
        await drain.consume(queue, auto_ack=True)
        seen = Counter(int(item.body) for item in await drain.deliveries(total))
    lost = channel.published - len(seen)
    twice = sum(count - 1 for count in seen.values())
    return Observed(
        verdict=ClaimVerdict.HOLDS if settled and lost == 0 else ClaimVerdict.DIFFERS,
        observed=f"nothing lost, {twice} messages twice, of {channel.published}"
        if lost == 0
        else f"{lost} of {channel.published} messages were lost",
        evidence=(
            (
                f"{channel.published} messages, {len(confirmed)} confirmed; of 100 the acks were held back, 50 never "
                "reached the broker; then the connection was cut"
            ),
            f"{len(unconfirmed)} not confirmed, published again on a new connection: all settled: {settled}",
            f"delivered: {len(seen)} different messages, {twice} of them a second time",
        ),
    )


async def heartbeat(ground: CheckContext) -> Observed:
    """Check claim S48.

    The broker checks once per interval and gives up at the second check without data (rabbit_heartbeat), so after two
    to three intervals. "About twice" in the claim is compared with the longer time.
    """
    async with await Relay.open(ground.server) as relay, await ground.client("S48 watcher") as other:
        unfit = await _unfit(ground, relay)
        if unfit is not None:
            return unfit
        watcher = await other.channel()
        beats, none = await ground.queue(watcher, "s48"), await ground.queue(watcher, "s48.none")
        quiet = await _holding(ground, relay, watcher, none, 0)
        beating = []
        for _ in range(_PHASES):
            beating.append(await _holding(ground, relay, watcher, beats, _HEARTBEAT))
            await asyncio.sleep(_HEARTBEAT / _PHASES)
        relay.pause()
        began = time.monotonic()
        await watcher.consume(beats)
        await watcher.consume(none)
        back = [item.at - began for item in await watcher.deliveries(_PHASES, 15.0)]
        await asyncio.wait({beating[0].closed}, timeout=20.0)
        took, noticed = time.monotonic() - began, beating[0].closed.done()
        still = len(watcher.frames(Delivery)) == len(back) and not quiet.closed.done()
        await relay.cut()
        for client in (quiet, *beating):
            client.cut()
    holds = len(back) == _PHASES and max(back) <= 3 * _HEARTBEAT + 1.0 and still
    if len(back) == _PHASES:
        first, last = min(back), max(back)
        observed = (
            f"heartbeat {_HEARTBEAT} s: the broker noticed after {first:.1f} to {last:.1f} s, "
            f"{first / _HEARTBEAT:.1f} to {last / _HEARTBEAT:.1f} times as long"
        )
    else:
        observed = f"{_PHASES - len(back)} of {_PHASES} dead connections were not noticed within 15 s"
    times = ", ".join(f"{seconds:.1f}" for seconds in back)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=observed,
        evidence=(
            f"{_PHASES} consumers, each with a message, through a relay that then passes nothing in either direction",
            f"broker: their messages went to another consumer after {times} s",
            f"client: {f'noticed after {took:.1f} s' if noticed else 'not noticed within 20 s'}",
            "the client, pika, looks each heartbeat plus 5 s, which shows only with one as short as this",
            f"a consumer without heartbeat: {'not' if still else ''} noticed by then, by neither side",
        ),
    )


async def _relayed(ground: CheckContext, relay: Relay, name: str, heartbeat: int | None = None) -> Client:
    return await Client.open(relay.through(ground.server), f"ackscope-verify {name}", heartbeat=heartbeat)


async def _holding(ground: CheckContext, relay: Relay, publisher: RawChannel, queue: str, heartbeat: int) -> Client:
    client = await _relayed(ground, relay, f"S48 heartbeat {heartbeat}", heartbeat)
    channel = await client.channel()
    await channel.qos(1)
    await channel.consume(queue)
    publisher.publish(queue)
    await channel.deliveries(1)
    return client


async def _unfit(ground: CheckContext, relay: Relay) -> Observed | None:
    """Return an inconclusive result if TLS prevents a connection through a relay, else None."""
    try:
        await (await _relayed(ground, relay, "relay")).close()
    except BrokerError as error:
        if not ground.server.address.tls:
            raise
        return Observed(
            verdict=ClaimVerdict.INCONCLUSIVE,
            observed="it takes a relay on 127.0.0.1, and the broker's certificate is not for that name",
            evidence=(str(error),),
        )
    return None


def _numbered(channel: RawChannel, queue: str, count: int) -> None:
    for _ in range(count):
        channel.publish(queue, b"%d" % (channel.published + 1))


async def _redelivered(ground: CheckContext, watcher: RawChannel, queue: str) -> bool:
    client = await ground.client("S46 consumer")
    channel = await client.channel()
    first = await channel.get(queue)
    client.cut()
    for _ in range(100):
        found = await watcher.get(queue, auto_ack=True)
        if found is not None and found.redelivered:
            return first is not None
        await asyncio.sleep(0.02)
    return False


CLAIMS = (
    VerifyClaim(
        id="S46",
        name="at-most-or-at-least-once",
        group="order",
        documented="Without confirms and acknowledgements messages can be lost in transit; with them duplicates are "
        "possible.",
        source=RELIABILITY,
        check=in_transit,
    ),
    VerifyClaim(
        id="S47",
        name="republish-unconfirmed",
        group="order",
        documented="After a lost connection a publisher republishes what was not confirmed: nothing lost, perhaps "
        "twice.",
        source=RELIABILITY,
        check=republish,
    ),
    VerifyClaim(
        id="S48",
        name="heartbeat-finds-dead-connection",
        group="order",
        documented="A heartbeat finds a dead connection within about twice its timeout; the operating system alone "
        "would need many minutes.",
        source=RELIABILITY,
        check=heartbeat,
        seconds=45.0,
    ),
)

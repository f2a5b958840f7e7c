"""Claims about messages in flight: which are lost or requeued, and how soon the broker notices a lost client."""

import asyncio
import time

from probes.verify.client import Client
from probes.verify.fixtures import fill, flags, ready, ready_after
from probes.verify.frames import Delivery
from probes.verify.relay import Relay
from probes.verify.sources import CONFIRMS, RELIABILITY
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_LOST, _UNBOUND = 200, 1000
_HEARTBEAT = 2
_NOTICED_WITHIN = 20.0


async def automatic(ground: CheckContext) -> Observed:
    """Check claim S04."""
    left = {}
    async with await ground.client("S04") as client, await Relay.open(ground.server) as relay:
        watcher = await client.channel()
        queue = await ground.queue(watcher, "s04")
        for auto in (True, False):
            consumer = await Client.open(relay.through(ground.server), "ackscope-verify S04 consumer")
            channel = await consumer.channel()
            await channel.consume(queue, auto_ack=auto)
            relay.pause(upstream=False)
            await fill(client, queue, _LOST)
            await ready(watcher, queue, 0)
            await relay.cut()
            relay.resume()
            await consumer.close()
            received = len(channel.frames(Delivery))
            left[auto] = received, await ready(watcher, queue, 0 if auto else _LOST, 2.0)
            await watcher.delete(queue)
            await ground.queue(watcher, "s04")
    holds = left[True] == (0, 0) and left[False][1] == _LOST
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"of {_LOST} messages on their way at the cut all are lost with automatic acknowledgement, none "
        "with manual"
        if holds
        else "the cut left other messages than documented",
        evidence=(
            f"{_LOST} confirmed messages, their consumer behind a network that carries nothing to it, then a cut",
            *(
                f"{'automatic' if auto else 'manual'} acknowledgement: the consumer received {came}, "
                f"the queue has {count} after"
                for auto, (came, count) in left.items()
            ),
        ),
    )


async def unbound(ground: CheckContext) -> Observed:
    """Check claim S05."""
    async with await ground.client("S05") as client, await Relay.open(ground.server) as relay:
        watcher = await client.channel()
        queue, bounded = await ground.queue(watcher, "s05"), await ground.queue(watcher, "s05.manual")
        async with await Client.open(relay.through(ground.server), "ackscope-verify S05 slow consumer") as slow:
            channel, careful = await slow.channel(), await slow.channel()
            for each in (channel, careful):
                await each.qos(10)
            await channel.consume(queue, auto_ack=True)
            await careful.consume(bounded)
            relay.pause(upstream=False)
            await fill(client, queue, _UNBOUND, size=100)
            await fill(client, bounded, _UNBOUND, size=100)
            waiting = await ready(watcher, queue, 0)
            remaining = await ready(watcher, bounded, _UNBOUND - 10)
            before = len(channel.frames(Delivery))
            relay.resume()
            after = len(await channel.deliveries(_UNBOUND))
    holds = (waiting, remaining, before) == (0, _UNBOUND - 10, 0)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"all {_UNBOUND} messages left for a consumer that read none, in spite of a prefetch of 10"
        if holds
        else "something bounded what was in flight",
        evidence=(
            f"{_UNBOUND} messages of 100 bytes, prefetch 10, a consumer that reads nothing",
            f"automatic acknowledgement: {waiting} still in the queue while it had received {before}",
            f"manual acknowledgement beside it: {remaining} still in the queue",
            f"once it read again it received {after}; only the buffers of the connection hold back more",
        ),
    )


async def requeued(ground: CheckContext) -> Observed:
    """Check claim S11."""
    evidence, holds = [], True
    async with await ground.client("S11") as client:
        watcher = await client.channel()
        for kind in ("classic", "quorum"):
            queue = await ground.queue(watcher, f"s11.{kind}", kind)
            await fill(client, queue, 5)
            for how in (
                "the channel is closed",
                "the connection is closed",
                "the client is killed",
                "an ack of tag 99",
            ):
                holder = await ground.client("S11 holder")
                channel = await holder.channel()
                await channel.consume(queue)
                held = len(await channel.deliveries(5))
                empty = await ready(watcher, queue, 0)
                if how == "the channel is closed":
                    await channel.close()
                elif how == "the connection is closed":
                    await holder.close()
                elif how == "the client is killed":
                    holder.cut()
                else:
                    channel.ack(99)
                took = await ready_after(watcher, queue, 5)
                ended = await channel.end()
                await holder.close()
                holds = holds and (held, empty) == (5, 0) and took is not None
                back = "not back" if took is None else f"back in the queue after {1000 * took:.0f} ms"
                evidence.append(f"{kind}, 5 held, {how} ({ended}): {back}")
            last = await client.channel()
            await last.consume(queue)
            came = await last.deliveries(5)
            holds = holds and len(came) == 5 and all(item.redelivered for item in came)
            evidence.append(f"{kind}, delivered once more: {flags(came)}")
            await last.close()
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="in each case all that was unacknowledged came back by itself, marked redelivered"
        if holds
        else "not all came back by itself",
        evidence=tuple(evidence),
    )


async def notice(ground: CheckContext) -> Observed:
    """Check claim S12."""
    async with await ground.client("S12") as client, await Relay.open(ground.server) as relay:
        watcher = await client.channel()
        closed_queue, silent = await ground.queue(watcher, "s12"), await ground.queue(watcher, "s12.silent")
        await fill(client, closed_queue, 1)
        await fill(client, silent, 1)
        killed = await ground.client("S12 killed", heartbeat=_HEARTBEAT)
        await (await killed.channel()).get(closed_queue)
        began = time.monotonic()
        killed.cut()
        soon = await ready_after(watcher, closed_queue, 1)
        quiet = await Client.open(relay.through(ground.server), "ackscope-verify S12 silent", heartbeat=_HEARTBEAT)
        await (await quiet.channel()).get(silent)
        relay.pause()
        began = time.monotonic()
        await asyncio.sleep(1.0)
        early = (await watcher.look(silent)).messages
        back = await ready(watcher, silent, 1, _NOTICED_WITHIN)
        late = time.monotonic() - began
        await relay.cut()
        await quiet.close()
    holds = soon is not None and back == 1 and early == 0 and late > soon
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"a socket that closes is noticed in {1000 * (soon or 0):.0f} ms, one that falls silent in "
        f"{late:.1f} s at a heartbeat of {_HEARTBEAT} s"
        if holds
        else "the broker did not notice both",
        evidence=(
            "a client that holds one message is killed, so that its socket closes: "
            + ("not requeued" if soon is None else f"requeued after {1000 * soon:.0f} ms"),
            f"another falls silent (a relay passes nothing on): {early} requeued after 1 s, {back} after {late:.1f} s",
            f"negotiated heartbeat: {_HEARTBEAT} s; S48 has the other side, and a connection without heartbeats",
        ),
    )


CLAIMS = (
    VerifyClaim(
        id="S04",
        name="automatic-ack-loses",
        group="delivery",
        documented="With automatic acknowledgement a message counts as delivered once it is written to the socket: if "
        "the connection dies then, it is lost.",
        source=CONFIRMS,
        check=automatic,
    ),
    VerifyClaim(
        id="S05",
        name="automatic-ack-unbounded",
        group="delivery",
        documented="Automatic acknowledgement knows no bound on what is in flight.",
        source=CONFIRMS,
        check=unbound,
    ),
    VerifyClaim(
        id="S11",
        name="requeue-on-close",
        group="delivery",
        documented="What was unacknowledged is requeued by itself when its channel or connection closes: in order, by "
        "a killed client, by a channel exception.",
        source=CONFIRMS,
        check=requeued,
        seconds=60.0,
    ),
    VerifyClaim(
        id="S12",
        name="noticing-takes-time",
        group="delivery",
        documented="Noticing that a client is gone takes time (heartbeats).",
        source=f"{CONFIRMS}; {RELIABILITY}",
        check=notice,
    ),
)

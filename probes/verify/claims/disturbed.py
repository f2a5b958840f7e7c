"""Claims that need a private broker: what survives a restart, cluster-wide definitions, and resource alarms."""

import asyncio
import time

from pika import spec

from probes.verify.channel import TIMEOUT, RawChannel
from probes.verify.client import Client
from probes.verify.frames import Closed
from probes.verify.requests import asked, filled, no_exchange, no_queue
from probes.verify.sources import RELIABILITY
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_MANY = 100

_KHEPRI = (4, 0)
"""First version with this effect: 4.0.5 keeps a transient exchange if the flag khepri_db is on, and else loses it."""

_AWAY = 3.0
"""Seconds to wait for an answer about a queue whose node was killed. 4.x answers only after about a minute."""


async def durable(ground: CheckContext) -> Observed:
    """Check claim S49."""
    assert ground.disturb is not None  # noqa: S101  the claim is of the lab
    names = [f"{ground.prefix}.s49.{what}" for what in ("exchange", "exchange.transient", "transient")]
    lasting, fleeting, transient = names
    ground.exchanges += [lasting, fleeting]
    async with await ground.client("S49") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s49")
        for name, survives in ((lasting, True), (fleeting, False)):
            method = spec.Exchange.Declare(exchange=name, type="fanout", durable=survives)
            await channel.call(method, spec.Exchange.DeclareOk)
            await channel.bind(queue, name)
        refused = await _transient(ground, client, transient)
        await channel.confirm_select()
        channel.publish(queue, b"persistent")
        channel.publish(queue, b"transient", persistent=False)
        await channel.settled()
    await ground.disturb.restart()
    async with await ground.client("S49 after") as client:
        channel = await client.channel()
        found = await channel.get(queue, auto_ack=True)
        rest = await channel.get(queue, auto_ack=True)
        channel.publish("", b"routed", exchange=lasting)
        await filled(channel, queue, 1)
        routed = await channel.get(queue, auto_ack=True)
        await channel.delete_exchange(lasting)
        no_fleeting, no_transient = await no_exchange(client, fleeting), await no_queue(client, transient)
        if not no_fleeting:
            await channel.delete_exchange(fleeting)
    rest_holds = (
        found is not None and found.body == b"persistent" and rest is None and routed is not None and no_transient
    )
    # In a cluster, the other nodes give the restarted node their exchanges, so only a single node decides the claim.
    decided = len(ground.disturb.nodes) == 1
    survives = decided and not no_fleeting
    if not rest_holds:
        observed = "the restart left something else than the durable and persistent"
    elif survives:
        observed = (
            "the exchange that is not durable was there after the restart; queue and message that are not were gone"
        )
    elif decided:
        observed = "what was durable and persistent was there after the restart, and nothing that lacked one of them"
    else:
        observed = "queue and message must both be made to last; of the exchange a cluster that runs on cannot tell"
    return Observed(
        verdict=ClaimVerdict.HOLDS if rest_holds and not survives else ClaimVerdict.DIFFERS,
        observed=observed,
        evidence=(
            f"durable queue: persistent message {_there(found)}, transient message {_there(rest)}",
            f"durable exchange: there, its binding {'routes' if routed else 'does not route'}",
            f"exchange that is not durable: {_there(not no_fleeting)}"
            + ("" if decided else "; not judged: it takes a restart of all nodes, the others ran on and know it"),
            refused or f"queue that is not durable, with a persistent message: {_there(not no_transient)}",
        ),
        because="the metadata store Khepri (always from 4.3, a feature flag before) keeps every definition on disk, "
        "as Mnesia did not (rabbitmq-server #12947)"
        if rest_holds and survives and ground.version >= _KHEPRI
        else "",
    )


async def cluster(ground: CheckContext) -> Observed:
    """Check claim S50."""
    disturb = ground.disturb
    assert disturb is not None  # noqa: S101  the claim is of the lab
    if len(disturb.nodes) < 2:
        return Observed(
            verdict=ClaimVerdict.NOT_APPLICABLE,
            observed="one node: there is no other that could know or lack anything",
            evidence=(f"nodes: {len(disturb.nodes)}",),
        )
    async with await ground.client("S50") as client:
        watcher = await client.channel()
        async with await Client.open(disturb.nodes[1], "ackscope-verify S50 home") as home:
            channel = await home.channel()
            queue = await ground.queue(channel, "s50")
            exchange = await ground.exchange(channel, "s50.exchange")
            await channel.bind(queue, exchange)
            await channel.confirm_select()
            for _ in range(_MANY):
                channel.publish(queue)
            await channel.settled()
        elsewhere = (await watcher.look(queue)).messages
        await disturb.stop(1)
        try:
            try:
                async with asyncio.timeout(_AWAY):
                    away = await asked(client, queue)
            except TimeoutError:
                away = f"no answer within {_AWAY:g} s"
            known = not await no_exchange(client, exchange)
        finally:
            await disturb.start(1)
        for _ in range(100):
            back = await asked(client, queue)
            if back.startswith(f"{_MANY} "):
                break
            await asyncio.sleep(0.1)
    holds = elsewhere == _MANY and not away.startswith(f"{_MANY} ") and back.startswith(f"{_MANY} ") and known
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="every node knows queue and exchange; the messages are there only while the queue's own node runs"
        if holds
        else "definitions or contents were not where the guide says",
        evidence=(
            (
                f"a classic queue made through the second node with {_MANY} messages, asked for through the first: "
                f"{elsewhere}"
            ),
            f"the second node stopped, through the first: {away}; the exchange: {_there(known)}",
            f"the second node started: {back}",
        ),
    )


async def alarm(ground: CheckContext) -> Observed:
    """Check claim S53."""
    assert ground.disturb is not None  # noqa: S101  the claim is of the lab
    async with await ground.client("S53") as client, await ground.client("S53 watcher") as other:
        channel, watcher = await client.channel(), await other.channel()
        queue = await ground.queue(channel, "s53")
        await channel.confirm_select()
        channel.publish(queue)
        before = await channel.settled()
        await ground.disturb.alarm(on=True)
        try:
            began = time.monotonic()
            blocked = await _publish_until_blocked(client, channel, queue)
            took, reason = time.monotonic() - began, client.blocked
            last = channel.publish(queue)
            confirmed = await channel.until(lambda: last in channel.answered(), 2.0)
            accepted = len(channel.answered())
            held = (await watcher.look(queue)).messages
            others = other.blocked
        finally:
            await ground.disturb.alarm(on=False)
        freed = await channel.until(lambda: client.blocked is None)
        late = await channel.settled()
    holds = before and blocked and not confirmed and held == accepted and freed and late and others is None
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="the broker sent connection.blocked, and messages of the publisher waited until the alarm was over"
        if holds
        else "an alarm did not block a publisher as documented",
        evidence=(
            (
                "memory alarm on, a publish every half second: "
                f"{f'connection.blocked after {took:.2f} s, reason: {reason}' if blocked else 'not told'}"
            ),
            (
                f"one more publish, within 2 s {'a' if confirmed else 'no'} confirm; "
                f"{accepted} of {channel.published} messages confirmed, {held} in the queue"
            ),
            f"a connection that does not publish: {'not told' if others is None else f'told {others}'}",
            (
                f"alarm off: {'connection.unblocked' if freed else 'no connection.unblocked'}, "
                f"{'all' if late else 'not all'} messages confirmed"
            ),
        ),
    )


async def _publish_until_blocked(client: Client, channel: RawChannel, queue: str) -> bool:
    """Publish until the broker says that it blocks the connection; whether it did.

    A connection hears of an alarm later than the node, so a message may be accepted after `rabbitmqctl` has returned.
    """
    deadline = time.monotonic() + TIMEOUT
    while client.blocked is None and time.monotonic() < deadline:
        channel.publish(queue)
        await channel.until(lambda: client.blocked is not None, 0.5)
    return client.blocked is not None


def _there(found: object) -> str:
    return "there" if found else "gone"


async def _transient(ground: CheckContext, client: Client, name: str) -> str:
    """Declare a transient queue and publish a message to it. Returns the refusal of the broker as text, or ""."""
    ground.queues.append(name)
    channel = await client.channel()
    try:
        await channel.declare(name, arguments={"x-expires": 300_000})
    except Closed as error:
        return f"queue that is not durable: refused by this version, {error.code}"
    await channel.confirm_select()
    channel.publish(name)
    await channel.settled()
    await channel.close()
    return ""


CLAIMS = (
    VerifyClaim(
        id="S49",
        name="all-three-to-survive-a-restart",
        group="order",
        documented="Durable exchange, durable queue and persistent message are all needed to survive a restart.",
        source=RELIABILITY,
        check=durable,
        lab=True,
        seconds=90.0,
    ),
    VerifyClaim(
        id="S50",
        name="definitions-on-all-nodes",
        group="order",
        documented="Definitions are known on all nodes of a cluster; the contents of a classic queue live on one.",
        source=RELIABILITY,
        check=cluster,
        lab=True,
        seconds=90.0,
    ),
    VerifyClaim(
        id="S53",
        name="alarm-blocks-publishers",
        group="order",
        documented="Under a resource alarm publishers are blocked and told so (connection.blocked).",
        source=RELIABILITY,
        check=alarm,
        lab=True,
        seconds=60.0,
    ),
)

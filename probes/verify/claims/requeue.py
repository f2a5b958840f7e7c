"""Claims about rejected messages: dropped, dead-lettered, or redelivered with the redelivered flag."""

from collections.abc import Sequence

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.fixtures import fill, flags, ready
from probes.verify.frames import Delivery
from probes.verify.sources import CONFIRMS, RELIABILITY
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_KINDS = ("classic", "quorum")


async def refused(ground: CheckContext) -> Observed:
    """Check claim S07."""
    evidence, holds = [], True
    async with await ground.client("S07") as client:
        watcher = await client.channel()
        for kind in _KINDS:
            plain = await ground.queue(watcher, f"s07.{kind}", kind)
            dead = await ground.queue(watcher, f"s07.{kind}.dead")
            onward = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
            queue = await ground.queue(watcher, f"s07.{kind}.onward", kind, onward)
            left = await _refuse_three(client, watcher, plain)
            holds = holds and left == 0
            evidence.append(f"{kind}, reject of one, nack of two with multiple, requeue false: {left} of 3 left")
            left = await _refuse_three(client, watcher, queue)
            arrived = await ready(watcher, dead, 3)
            channel = await client.channel()
            first = await channel.get(dead)
            death = first.headers.get("x-death", [{}])[0] if first else {}
            await channel.close()
            holds = holds and (left, arrived, death.get("reason")) == (0, 3, "rejected")
            evidence.append(
                f"{kind} with a dead-letter exchange: {left} left, {arrived} of 3 in the dead-letter queue, "
                f"x-death: {death.get('reason')} from its queue, count {death.get('count')}"
            )
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="dropped where nothing is set, in the dead-letter queue where an exchange is"
        if holds
        else "a rejected message went elsewhere than documented",
        evidence=tuple(evidence),
    )


async def _refuse_three(client: Client, watcher: RawChannel, queue: str) -> int:
    """Publish three messages and reject one, then two, without requeue. Returns how many remain in the queue."""
    await fill(client, queue, 3)
    channel = await client.channel()
    await channel.consume(queue)
    await channel.deliveries(3)
    channel.reject(1, requeue=False)
    channel.nack(3, multiple=True, requeue=False)
    await channel.close()
    return await ready(watcher, queue, 0)


async def again(ground: CheckContext) -> Observed:
    """Check claim S08."""
    evidence, holds = [], True
    async with await ground.client("S08") as client:
        watcher = await client.channel()
        for kind in _KINDS:
            queue = await ground.queue(watcher, f"s08.{kind}", kind)
            await fill(client, queue, 6)
            channel = await client.channel()
            for _ in range(6):
                await channel.get(queue)
            channel.reject(6)
            one = await ready(watcher, queue, 1)
            channel.nack(4, multiple=True)
            several = await ready(watcher, queue, 5)
            channel.nack(5)
            all_ = await ready(watcher, queue, 6)
            await channel.close()
            holds = holds and (one, several, all_) == (1, 5, 6)
            evidence.append(
                f"{kind}, 6 held: reject of tag 6 requeues {one}, nack of 4 with multiple {several - one} more, "
                f"nack of 5 alone {all_ - several} more"
            )
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="reject requeues one message, nack with multiple all up to its tag"
        if holds
        else "other messages were requeued than documented",
        evidence=(*evidence, "basic.reject has no field for more than one (protocol 0-9-1)"),
    )


async def marked(ground: CheckContext) -> Observed:
    """Check claim S10."""
    evidence, holds = [], True
    async with await ground.client("S10") as client, await ground.client("S10 other") as other:
        for kind in _KINDS:
            channel = await client.channel()
            queue = await ground.queue(channel, f"s10.{kind}", kind)
            await fill(client, queue, 3)
            await channel.consume(queue)
            fresh = list(await channel.deliveries(3))
            channel.nack(3, multiple=True)
            same = (await channel.deliveries(6))[3:]
            await channel.close()
            elsewhere = await other.channel()
            await elsewhere.consume(queue)
            another = list(await elsewhere.deliveries(3))
            await elsewhere.close()
            puller = await other.channel()
            got = [item for item in [await puller.get(queue)] if item is not None]
            await puller.close()
            holds = (
                holds
                and [len(fresh), len(same), len(another), len(got)] == [3, 3, 3, 1]
                and not any(item.redelivered for item in fresh)
                and all(item.redelivered for item in (*same, *another, *got))
            )
            evidence += [
                f"{kind}, first delivery: {flags(fresh)}",
                f"{kind}, after basic.nack, to the same consumer: {flags(same)}",
                f"{kind}, after its channel closed, to a consumer of another connection: {flags(another)}",
                f"{kind}, after that one closed, by basic.get: {flags(got)}{_counted(got)}",
            ]
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="false at first, true at every redelivery, also to another consumer"
        if holds
        else "a flag was set otherwise than documented",
        evidence=tuple(evidence),
    )


def _counted(deliveries: Sequence[Delivery]) -> str:
    found = [item.headers["x-delivery-count"] for item in deliveries if "x-delivery-count" in item.headers]
    return f", x-delivery-count {found[0]}" if found else ""


CLAIMS = (
    VerifyClaim(
        id="S07",
        name="reject-without-requeue",
        group="delivery",
        documented="basic.reject and basic.nack with requeue false drop the message, or dead-letter it where a "
        "dead-letter exchange is set.",
        source=f"{CONFIRMS}; {RELIABILITY}",
        check=refused,
    ),
    VerifyClaim(
        id="S08",
        name="requeue",
        group="delivery",
        documented="With requeue true a message is queued again; basic.nack can do so for many at once, basic.reject "
        "only for one.",
        source=CONFIRMS,
        check=again,
    ),
    VerifyClaim(
        id="S10",
        name="redelivered-flag",
        group="delivery",
        documented="The redelivered flag is false on the first delivery and true on a redelivery, also to another "
        "consumer.",
        source=CONFIRMS,
        check=marked,
    ),
)

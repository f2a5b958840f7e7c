"""Claims about delivery tags and acknowledgements: numbers, channel scope, and `multiple`."""

import asyncio
import time

from pika import spec

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.fixtures import fill, ready
from probes.verify.frames import Delivery
from probes.verify.sources import CONFIRMS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Manage, Observed, VerifyClaim

_LARGEST = 2**63 - 1
_WIDEST = 2**64 - 1
_MANAGED_WITHIN = 12.0
"""Longest wait in seconds for statistics of the management API. They lag by 5 s, on a busy broker by more."""


async def tags(ground: CheckContext) -> Observed:
    """Check claim S01."""
    async with await ground.client("S01") as client:
        first, second = await client.channel(), await client.channel()
        queue = await ground.queue(first, "s01")
        await fill(client, queue, 60)
        for _ in range(10):
            await second.get(queue)
        await first.qos(10)
        await first.consume(queue)
        for tag in range(1, 21):
            await first.deliveries(tag)
            first.ack(tag)
        consumed = [item.tag for item in await first.deliveries(20)][:20]
        got = [item.tag for item in second.frames(Delivery)]
        await second.close()
        third = await client.channel()
        again = await third.get(queue)
    runs = consumed == list(range(1, 21)) and got == list(range(1, 11)) and again is not None and again.tag == 1
    return Observed(
        verdict=ClaimVerdict.HOLDS if runs else ClaimVerdict.DIFFERS,
        observed="on each channel the tags start at 1 and grow by one, of consumed and of got messages"
        if runs
        else "the tags of a channel did not run from 1 without a gap",
        evidence=(
            f"20 messages consumed on one channel, acked one by one: tags {_run(consumed)}",
            f"10 messages got on a second channel of the connection at the same time: tags {_run(got)}",
            f"a third channel, opened after the second was closed: tag {again.tag if again else 'of no message'}",
        ),
    )


async def scope(ground: CheckContext) -> Observed:
    """Check claim S02."""
    async with await ground.client("S02") as client:
        owner, other = await client.channel(), await client.channel()
        queue = await ground.queue(owner, "s02")
        await fill(client, queue, 1)
        await owner.get(queue)
        other.ack(1)
        ended = await other.end()
        owner.ack(1)
        # Any answer shows that the channel accepted the ack.
        await owner.look(queue)
        still = not owner.closed.done()
        await owner.close()
        watcher = await client.channel()
        left = (await watcher.look(queue)).messages
    holds = ended is not None and ended.code == 406 and "unknown delivery tag" in ended.text and still and left == 0
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="the tag of another channel is unknown: 406 and the channel is closed; its own channel acks it"
        if holds
        else "an ack on another channel was not refused as documented",
        evidence=(
            f"tag 1 of one channel acked on another: {ended or 'not closed'}",
            f"then acked on its own: {'accepted' if still else 'refused'}, {left} messages left",
        ),
    )


async def manual(ground: CheckContext) -> Observed:
    """Check claim S03."""
    async with await ground.client("S03") as client:
        watcher, channel = await client.channel(), await client.channel()
        queue = await ground.queue(watcher, "s03")
        await fill(client, queue, 5)
        await channel.consume(queue)
        await channel.deliveries(5)
        waiting = (await watcher.look(queue)).messages
        endings = (
            "not asked: its address was not given" if ground.manage is None else await _unacked(ground.manage, queue, 5)
        )
        channel.ack(1)
        channel.ack(2)
        await channel.close()
        left = await ready(watcher, queue, 3)
    # The value of the API is shown but not judged: on a busy broker it may lag longer than this check waits.
    holds = (waiting, left) == (0, 3)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="what is delivered is not ready and not gone: only what was acked left the queue"
        if holds
        else "messages left the queue otherwise than by their acks",
        evidence=(
            f"5 messages delivered, none acked: {waiting} ready in the queue",
            f"messages_unacknowledged of the management API: {endings}",
            f"2 acked, then the channel closed: {left} of 5 in the queue",
        ),
    )


async def _unacked(manage: Manage, queue: str, count: int) -> str:
    """Wait until the management API reports `count` unacked messages. Returns the last value that it reported."""
    deadline = time.monotonic() + _MANAGED_WITHIN
    said: object = None
    while said != count and time.monotonic() < deadline:
        said = (await manage.queue(queue) or {}).get("messages_unacknowledged")
        await asyncio.sleep(0.5)
    return "no figure yet" if said is None else str(said)


async def multiple(ground: CheckContext) -> Observed:
    """Check claim S06."""
    async with await ground.client("S06") as client:
        watcher = await client.channel()
        queue = await ground.queue(watcher, "s06")
        left = {}
        for what, tag, several in (
            ("tag 6 with multiple", 6, True),
            ("tag 6 alone", 6, False),
            ("tag 0 with multiple", 0, True),
        ):
            await fill(client, queue, 10)
            channel = await _holding(client, queue, 10)
            channel.ack(tag, multiple=several)
            await channel.close()
            left[what] = await ready(watcher, queue, {"tag 6 with multiple": 4, "tag 6 alone": 9}.get(what, 0))
            await _purge(watcher, queue)
        await fill(client, queue, 10)
        one, other = await _holding(client, queue, 5), await _holding(client, queue, 5)
        one.ack(5, multiple=True)
        await one.close()
        await other.close()
        elsewhere = await ready(watcher, queue, 5)
    holds = list(left.values()) == [4, 9, 0] and elsewhere == 5
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="multiple covers all outstanding tags up to the given one on its channel; without it only that one"
        if holds
        else "an ack covered other tags than documented",
        evidence=(
            *(
                f"10 outstanding, ack of {what}, channel closed: {count} back in the queue"
                for what, count in left.items()
            ),
            f"5 outstanding on each of two channels, ack of 5 with multiple on one: {elsewhere} back in the queue",
        ),
    )


async def _holding(client: Client, queue: str, count: int) -> RawChannel:
    channel = await client.channel()
    for _ in range(count):
        await channel.get(queue)
    return channel


async def _purge(channel: RawChannel, queue: str) -> None:
    await channel.call(spec.Queue.Purge(queue=queue), spec.Queue.PurgeOk)


async def unknown(ground: CheckContext) -> Observed:
    """Check claim S14."""
    endings = {}
    async with await ground.client("S14") as client:
        watcher = await client.channel()
        queue = await ground.queue(watcher, "s14")
        await fill(client, queue, 1)
        twice = await client.channel()
        await twice.get(queue)
        twice.ack(1)
        twice.ack(1)
        endings["the same tag twice"] = await twice.end()
        never = await client.channel()
        never.ack(99)
        endings["a tag that never was"] = await never.end()
        nacked = await client.channel()
        nacked.nack(7, multiple=True)
        endings["nack with multiple up to a tag that never was"] = await nacked.end()
        rejected = await client.channel()
        rejected.reject(7)
        endings["reject of a tag that never was"] = await rejected.end()
        alive = not client.closed.done()
        left = (await watcher.look(queue)).messages
    holds = alive and all(ended is not None and ended.code == 406 for ended in endings.values())
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="each is 406 PRECONDITION_FAILED and ends the channel, not the connection"
        if holds
        else "not each was refused with 406",
        evidence=(
            *(f"{what}: {ended or 'not closed'}" for what, ended in endings.items()),
            f"the connection afterwards: {'open' if alive else 'closed'}; the first ack counted: {left} messages left",
        ),
    )


async def largest(ground: CheckContext) -> Observed:
    """Check claim S15."""
    endings = {}
    async with await ground.client("S15") as client:
        for tag in (_LARGEST, _LARGEST + 1, _WIDEST):
            channel = await client.channel()
            channel.ack(tag)
            endings[tag] = await channel.end()
        alive = not client.closed.done()
    ended = endings[_LARGEST]
    holds = alive and ended is not None and ended.code == 406 and str(_LARGEST) in ended.text
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"{_LARGEST} is read as a tag like any other, and is unknown"
        if holds
        else f"{_LARGEST} was not read as a tag",
        evidence=(
            *(f"ack of {tag}: {how or 'not closed'}" for tag, how in endings.items()),
            "the field is 64 bits without a sign; the documented limit is that of a signed number, as clients hold it",
            "not shown: what comes after that tag; at a million deliveries a second it takes 292,000 years",
        ),
    )


def _run(found: list[int]) -> str:
    return f"{found[0]} to {found[-1]}" if found == list(range(found[0], found[-1] + 1)) else str(found)


CLAIMS = (
    VerifyClaim(
        id="S01",
        name="delivery-tags",
        group="delivery",
        documented="A delivery tag identifies a delivery on its channel; tags start at 1 and grow by one.",
        source=CONFIRMS,
        check=tags,
    ),
    VerifyClaim(
        id="S02",
        name="tags-belong-to-a-channel",
        group="delivery",
        documented="Tags are scoped to the channel: an ack on another is an unknown delivery tag (406) and closes it.",
        source=CONFIRMS,
        check=scope,
    ),
    VerifyClaim(
        id="S03",
        name="manual-ack-removes",
        group="delivery",
        documented="With manual acknowledgement a message leaves the queue only when acknowledged; until then it "
        "counts as unacknowledged.",
        source=CONFIRMS,
        check=manual,
    ),
    VerifyClaim(
        id="S06",
        name="ack-multiple",
        group="delivery",
        documented="basic.ack with multiple covers every outstanding tag up to and including the given one, on this "
        "channel only; without it lower tags stay outstanding.",
        source=CONFIRMS,
        check=multiple,
    ),
    VerifyClaim(
        id="S14",
        name="unknown-tag",
        group="delivery",
        documented="Acknowledging a tag twice, or an unknown tag, is 406 PRECONDITION_FAILED and closes the channel.",
        source=CONFIRMS,
        check=unknown,
    ),
    VerifyClaim(
        id="S15",
        name="largest-tag",
        group="delivery",
        documented=f"The tag is a 64-bit number; the largest is {_LARGEST}.",
        source=CONFIRMS,
        check=largest,
    ),
)

"""Claims about prefetch: which acks make room below the limit, and that basic.get ignores it."""

from pika import spec

from probes.verify.fixtures import fill, quiet
from probes.verify.frames import Delivery
from probes.verify.sources import CONFIRMS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim


async def room(ground: CheckContext) -> Observed:
    """Check claim S17."""
    steps: list[tuple[str, int]] = []
    async with await ground.client("S17") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s17")
        await fill(client, queue, 60)
        await channel.qos(10)
        await channel.consume(queue)
        total = (await quiet(channel))[0]
        first = total
        for what, settle in (
            ("ack of tag 3 alone", spec.Basic.Ack(3)),
            ("ack of 8 with multiple, 7 outstanding up to it", spec.Basic.Ack(8, multiple=True)),
            ("nack of tag 9 without requeue", spec.Basic.Nack(9, requeue=False)),
            ("reject of tag 10 without requeue", spec.Basic.Reject(10, requeue=False)),
        ):
            channel.send(settle)
            (now,) = await quiet(channel)
            steps.append((what, now - total))
            total = now
    holds = first == 10 and [more for _, more in steps] == [1, 7, 1, 1]
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="each settled message made room for one, also several by one ack with multiple"
        if holds
        else "other numbers came than had been settled",
        evidence=(
            f"60 messages, prefetch 10: {first} delivered",
            *(f"{what}: {more} more" for what, more in steps),
        ),
    )


async def got(ground: CheckContext) -> Observed:
    """Check claim S20."""
    async with await ground.client("S20") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s20")
        await fill(client, queue, 20)
        await channel.qos(1)
        await channel.consume(queue)
        (pushed,) = await quiet(channel)
        pulled = [await channel.get(queue) for _ in range(10)]
        count = sum(item is not None for item in pulled)
        outstanding = len(channel.frames(Delivery))
        # Acks of messages from basic.get make no room. Only the ack of tag 1, the message of the consumer, does.
        for item in pulled[:5]:
            if item is not None:
                channel.ack(item.tag)
        (after_got,) = await quiet(channel)
        channel.ack(1)
        (after_own,) = await quiet(channel)
    holds = (pushed, count, outstanding, after_got, after_own) == (1, 10, 11, 11, 12)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="basic.get gave every message asked for beyond the prefetch"
        if holds
        else "the prefetch had an effect on basic.get, or the other way round",
        evidence=(
            f"20 messages, prefetch 1, a consumer that holds {pushed}: 10 times basic.get on its channel gave {count}",
            f"{outstanding} unacknowledged on the channel at a prefetch of 1",
            f"5 of the got acked: {after_got - outstanding} more to the consumer",
            f"its own acked: {after_own - after_got} more",
        ),
    )


CLAIMS = (
    VerifyClaim(
        id="S17",
        name="ack-makes-room",
        group="prefetch",
        documented="An acknowledgement makes room for one more; one with multiple for as many as it covers.",
        source=CONFIRMS,
        check=room,
    ),
    VerifyClaim(
        id="S20",
        name="get-ignores-prefetch",
        group="prefetch",
        documented="Prefetch does not apply to basic.get.",
        source=CONFIRMS,
        check=got,
    ),
)

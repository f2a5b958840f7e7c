"""Claims about prefetch: what it limits, the effect of lowering it, and where it can be set."""

from probes.verify.channel import RawChannel
from probes.verify.fixtures import fill, quiet
from probes.verify.frames import Closed, Delivery
from probes.verify.sources import CONFIRMS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_DENIED = (
    "since 4.3 global QoS is denied by default (rabbitmq-server #15460): basic.qos with global is then answered with "
    "qos-ok and applied to each consumer"
)


async def _channel_wide(channel: RawChannel, count: int) -> Closed | None:
    """Set one prefetch for all consumers of a channel. Returns the refusal of the broker, or None."""
    try:
        await channel.qos(count, global_=True)
    except Closed as error:
        return error
    return None


def _answered(refusal: Closed | None) -> str:
    return "accepted" if refusal is None else f"refused, {refusal}"


def _gone(ground: CheckContext) -> bool:
    """Whether the documentation says that this version has no prefetch for a whole channel."""
    return ground.version >= (4, 3, 0)


async def cap(ground: CheckContext) -> Observed:
    """Check claim S16."""
    evidence, holds = [], True
    for kind in ("classic", "quorum"):
        async with await ground.client("S16") as client:
            channel = await client.channel()
            queue = await ground.queue(channel, f"s16.{kind}", kind)
            await fill(client, queue, 50)
            await channel.qos(7)
            for _ in range(2):
                await channel.consume(queue)
            (held,) = await quiet(channel)
            each = sorted(_by_consumer(channel).values())
            left = (await channel.look(queue)).messages
            channel.ack(1)
            (more,) = await quiet(channel)
        holds = holds and (held, each, left, more) == (14, [7, 7], 36, 15)
        evidence.append(
            f"{kind}, 50 messages, prefetch 7, two consumers on a channel: {held} delivered, {each} a consumer, {left} "
            f"wait; after one ack {more - held} more"
        )
    wide, observation = await _cap_of_channel(ground)
    evidence.append(observation)
    holds = holds and (wide or _gone(ground))
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=(
            "at the cap the broker waited for an ack; it is of each consumer" + (" or of the channel" if wide else "")
        )
        if holds
        else "more or fewer were outstanding than the prefetch",
        evidence=tuple(evidence),
        because="" if wide or not holds else f"the channel's part does not apply: {_DENIED}",
    )


async def _cap_of_channel(ground: CheckContext) -> tuple[bool, str]:
    """Check whether one prefetch limits all consumers of a channel together. Returns the result and the evidence."""
    async with await ground.client("S16 channel") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s16.channel")
        await fill(client, queue, 50)
        what = "classic, prefetch 7 for the whole channel (global)"
        refusal = await _channel_wide(channel, 7)
        if refusal is not None:
            return False, f"{what}: {_answered(refusal)}"
        for _ in range(2):
            await channel.consume(queue)
        (held,) = await quiet(channel)
        channel.ack(1)
        (more,) = await quiet(channel)
    return (held, more) == (7, 8), (
        f"{what}: accepted; two consumers hold {held} together, after one ack {more - held} more"
    )


def _by_consumer(channel: RawChannel) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in channel.frames(Delivery):
        counts[item.consumer] = counts.get(item.consumer, 0) + 1
    return counts


async def lower(ground: CheckContext) -> Observed:
    """Check claim S18."""
    async with await ground.client("S18") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s18")
        await fill(client, queue, 60)
        await channel.qos(10)
        await channel.consume(queue)
        await quiet(channel)
        await channel.qos(3)
        channel.ack(1)
        (held_back,) = await quiet(channel)
        await channel.consume(queue)
        (both,) = await quiet(channel)
    evidence = [
        "60 messages, prefetch 10, a consumer holds 10; then prefetch 3 for the channel's next consumers",
        f"after one ack it holds {held_back - 1} again: a running consumer keeps its own; next: {both - held_back}",
    ]
    wide, observation = await _lower_channel(ground)
    holds = (held_back, both - held_back) == (11, 3) and (wide or _gone(ground))
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=("more than the new value stays outstanding: a running consumer keeps its own for its life")
        + ("; of a channel, until the acks catch up" if wide else "")
        if holds
        else "lowering it had another effect than documented",
        evidence=(*evidence, observation),
        because="" if wide or not holds else f"only the consumer's part applies: {_DENIED}",
    )


async def _lower_channel(ground: CheckContext) -> tuple[bool, str]:
    """Check whether the prefetch of a channel can be lowered and acks reach it. Returns the result and the evidence."""
    async with await ground.client("S18 channel") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s18.channel")
        await fill(client, queue, 60)
        what = "prefetch of the whole channel (global)"
        refusal = await _channel_wide(channel, 10)
        if refusal is not None:
            return False, f"{what}: {_answered(refusal)}"
        await channel.consume(queue)
        await quiet(channel)
        await channel.qos(3, global_=True)
        outstanding = []
        for settled in (0, 5, 7, 8, 9):
            if settled:
                channel.ack(settled, multiple=True)
            (came,) = await quiet(channel)
            outstanding.append(came - settled)
    return outstanding == [10, 5, 3, 3, 3], (
        f"{what} from 10 to 3, acks with multiple up to 0, 5, 7, 8, 9: {outstanding} outstanding"
    )


async def where(ground: CheckContext) -> Observed:
    """Check claim S19."""
    async with await ground.client("S19") as client:
        channel = await client.channel()
        one, other = await ground.queue(channel, "s19.one"), await ground.queue(channel, "s19.other")
        quorum = await ground.queue(channel, "s19.quorum", "quorum")
        for queue in (one, other):
            await fill(client, queue, 20)
        await channel.qos(4)
        await channel.consume(one)
        await channel.qos(6)
        await channel.consume(other)
        (_,) = await quiet(channel)
        each = sorted(_by_consumer(channel).values())
        await channel.close()
        wide = await client.channel()
        refusal = await _channel_wide(wide, 5)
        shared, on_quorum = 0, None
        if refusal is None:
            await wide.consume(one)
            await wide.consume(other)
            (shared,) = await quiet(wide)
            on_quorum = await _consuming(wide, quorum)
    per_channel = refusal is None and shared == 5
    holds = each == [4, 6] and per_channel
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="of a consumer and of a channel; there is none for a connection"
        if holds
        else "of a consumer only: a prefetch for a whole channel has no effect"
        if each == [4, 6] and _gone(ground)
        else "the values set were not those that held",
        evidence=(
            f"prefetch 4, a consumer, then prefetch 6, another: they hold {each}",
            f"prefetch 5 for the channel (global): {_answered(refusal)}"
            + ("" if refusal is not None else f"; two consumers of two queues hold {shared} together"),
            *(
                ()
                if refusal is not None
                else (f"a consumer of a quorum queue on that channel: {_answered(on_quorum)}",)
            ),
            "global means the channel, not the connection as in the protocol (consumer prefetch guide)",
        ),
        because=_DENIED if each == [4, 6] and not per_channel and _gone(ground) else "",
    )


async def _consuming(channel: RawChannel, queue: str) -> Closed | None:
    try:
        await channel.consume(queue)
    except Closed as error:
        return error
    return None


CLAIMS = (
    VerifyClaim(
        id="S16",
        name="prefetch-caps",
        group="prefetch",
        documented="The prefetch count caps unacknowledged deliveries on a channel or per consumer; at the cap the "
        "broker waits for an acknowledgement.",
        source=CONFIRMS,
        check=cap,
    ),
    VerifyClaim(
        id="S18",
        name="lowering-prefetch",
        group="prefetch",
        documented="Changing prefetch while deliveries are in flight can leave more outstanding than the new value for "
        "a moment.",
        source=CONFIRMS,
        check=lower,
    ),
    VerifyClaim(
        id="S19",
        name="where-prefetch-is-set",
        group="prefetch",
        documented="It can be set per channel and per consumer (global; version dependent).",
        source=CONFIRMS,
        check=where,
    ),
)

"""Claims about the order of messages, exclusive queues, mandatory messages and dead-lettering."""

import asyncio
from typing import Any

from probes.verify.frames import Closed, Confirm, Return
from probes.verify.requests import asked, got
from probes.verify.sources import RELIABILITY, SEMANTICS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_MANY = 300
_WINDOW = 5


async def one_channel(ground: CheckContext) -> Observed:
    """Check claim S43."""
    wanted = [b"%d" % number for number in range(_MANY)]
    evidence, holds = [], True
    async with await ground.client("S43") as client, await ground.client("S43 consumer") as other:
        channel = await client.channel()
        exchange = await ground.exchange(channel, "s43.exchange", "direct")
        for kind in ("classic", "quorum"):
            queue = await ground.queue(channel, f"s43.{kind}", kind)
            await channel.bind(queue, exchange, kind)
            for body in wanted:
                channel.publish(kind, body, exchange=exchange)
            first = await other.channel()
            await first.consume(queue)
            fresh = await first.deliveries(_MANY)
            first.nack(fresh[-1].tag, multiple=True)
            again = (await first.deliveries(2 * _MANY))[_MANY:]
            await first.close()
            second = await other.channel()
            await second.consume(queue, auto_ack=True)
            last = await second.deliveries(_MANY)
            orders = [_disorder(wanted, [item.body for item in part]) for part in (fresh, again, last)]
            holds = holds and orders == ["in order"] * 3
            evidence.append(
                f"{kind}, {_MANY} messages: first {orders[0]}, after basic.nack of all at once {orders[1]}, after the "
                f"channel closed {orders[2]}"
            )
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="in the order of publishing, also after a requeue of all" if holds else "another order than published",
        evidence=tuple(evidence),
    )


async def several(ground: CheckContext) -> Observed:
    """Check claim S44."""
    async with await ground.client("S44") as client:
        channel, leaving, staying = [await client.channel() for _ in range(3)]
        queue = await ground.queue(channel, "s44")
        for consumer in (leaving, staying):
            await consumer.qos(_WINDOW)
            await consumer.consume(queue)
        for number in range(2 * _WINDOW):
            channel.publish(queue, b"%d" % number)
        held = await leaving.deliveries(_WINDOW)
        received = await staying.deliveries(_WINDOW)
        await leaving.close()
        staying.ack(received[-1].tag, multiple=True)
        seen = [int(item.body) for item in await staying.deliveries(2 * _WINDOW)]
    holds = len(seen) == 2 * _WINDOW and seen != sorted(seen)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="the consumer that stayed saw earlier messages after later ones, when the other's were requeued"
        if holds
        else "the consumer that stayed saw no message out of order",
        evidence=(
            (
                f"messages 0 to {2 * _WINDOW - 1}, two consumers with prefetch {_WINDOW}; the first held "
                f"{[int(item.body) for item in held]} and closed its channel"
            ),
            f"the second saw {seen}",
        ),
    )


async def exclusive(ground: CheckContext) -> Observed:
    """Check claim S45."""
    name = f"{ground.prefix}.s45"
    ground.queues.append(name)
    async with await ground.client("S45 watcher") as other:
        async with await ground.client("S45") as owner:
            channel = await owner.channel()
            await channel.declare(name, durable=True, exclusive=True)
            channel.publish(name)
            foreign = await asked(other, name)
            try:
                await channel.declare(name, durable=False, exclusive=True)
                same = "the same queue"
            except Closed as error:
                same = str(error)
            seen = await ground.manage.queue(name) if ground.manage is not None else None
        # The broker deletes it when it notices the end of the connection, a moment after the client.
        for _ in range(50):
            after = await asked(other, name)
            if after.startswith("404"):
                break
            await asyncio.sleep(0.1)
    ignored = same == "the same queue"
    holds = foreign.startswith("405") and after.startswith("404") and ignored
    evidence = [
        f"declared exclusive and durable, asked for by another connection: {foreign}",
        f"declared again by its own as not durable: {same}",
        f"after its connection closed: {after}",
    ]
    if seen is not None:
        evidence.append(f"the management API says durable: {seen.get('durable')}")
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="an exclusive queue went with its connection, durable or not"
        if holds
        else "an exclusive queue did not go with its connection, or its durable flag counts",
        evidence=tuple(evidence),
    )


async def mandatory(ground: CheckContext) -> Observed:
    """Check claim S51."""
    evidence, orders = [], []
    async with await ground.client("S51") as client:
        channel = await client.channel()
        queue, spare = await ground.queue(channel, "s51"), await ground.queue(channel, "s51.spare")
        alternate = await ground.exchange(channel, "s51.alternate")
        await channel.bind(spare, alternate)
        exchange = await ground.exchange(channel, "s51.direct", "direct")
        covered = await ground.exchange(channel, "s51.covered", "direct", **{"alternate-exchange": alternate})
        await channel.bind(queue, exchange, "known")
        await channel.confirm_select()
        for what, key, by in (
            ("straight to a declared queue", queue, ""),
            ("by an exchange to a bound key", "known", exchange),
            ("by an exchange to an unbound key", "unknown", exchange),
            ("the same, with an alternate exchange", "unknown", covered),
        ):
            before = len(channel.log)
            channel.publish(key, exchange=by, mandatory=True)
            await channel.settled()
            came = [type(frame) for frame in channel.log[before:]]
            orders.append(came == [Return, Confirm])
            evidence.append(f"{what}: {', then '.join('return' if kind is Return else 'ack' for kind in came)}")
        counts = (await channel.look(queue)).messages, (await channel.look(spare)).messages
        # Auto-delete does not apply to exchanges that never had a binding of their own, so delete this one.
        await channel.delete_exchange(covered)
    evidence.append(f"in the queue {counts[0]} of 2, in the queue of the alternate exchange {counts[1]} of 1")
    holds = orders == [False, False, True, False] and counts == (2, 1)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="a message with mandatory is returned when no queue took it, and only then; an alternate exchange "
        "counts"
        if holds
        else "a return came or was missing against the documentation",
        evidence=tuple(evidence),
    )


async def dead_letter(ground: CheckContext) -> Observed:
    """Check claim S52."""
    first, second = f"{ground.prefix}.s52", f"{ground.prefix}.s52.dead"
    path, last = [], None
    async with await ground.client("S52") as client:
        channel = await client.channel()
        for name, target in (("s52", second), ("s52.dead", first)):
            dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
            await ground.queue(channel, name, arguments=dead)
        channel.publish(first, b"cannot be processed")
        for queue in (first, second, first, second):
            last = await got(channel, queue)
            path.append(last is not None)
            if last is not None and len(path) < 4:
                channel.reject(last.tag, requeue=False)
        deaths: list[dict[str, Any]] = list(last.headers.get("x-death", [])) if last is not None else []
        if last is not None:
            channel.ack(last.tag)
    counts = {item["queue"]: item["count"] for item in deaths}
    holds = all(path) and counts == {first: 2, second: 1} and all(item["reason"] == "rejected" for item in deaths)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="a rejected message went to the dead-letter exchange each time; x-death counts each queue and reason"
        if holds
        else "a rejected message was not dead-lettered, or x-death counts otherwise",
        evidence=(
            "one message rejected in a first queue, then in a second, then in the first again",
            *(
                f"x-death: queue {item['queue'].removeprefix(ground.prefix + '.')}, reason {item['reason']}, count "
                f"{item['count']}"
                for item in deaths
            ),
        ),
    )


def _disorder(wanted: list[bytes], seen: list[bytes]) -> str:
    if seen == wanted:
        return "in order"
    if len(seen) != len(wanted):
        return f"{len(seen)} of {len(wanted)}"
    place = next(index for index, (one, other) in enumerate(zip(wanted, seen, strict=True)) if one != other)
    return f"{seen[place].decode()} in place of {wanted[place].decode()}"


CLAIMS = (
    VerifyClaim(
        id="S43",
        name="order-on-one-path",
        group="order",
        documented="Messages through one channel, one exchange, one queue and one outgoing channel arrive in order.",
        source=SEMANTICS,
        check=one_channel,
    ),
    VerifyClaim(
        id="S44",
        name="order-with-several-consumers",
        group="order",
        documented="With several subscribers a single one can see messages out of order, after requeues by others.",
        source=SEMANTICS,
        check=several,
    ),
    VerifyClaim(
        id="S45",
        name="exclusive-queue",
        group="order",
        documented="An exclusive queue goes with its connection; its durable flag is ignored.",
        source=SEMANTICS,
        check=exclusive,
    ),
    VerifyClaim(
        id="S51",
        name="mandatory",
        group="order",
        documented="mandatory tells a publisher whether at least one queue took the message; publishing straight to "
        "a declared queue does too.",
        source=RELIABILITY,
        check=mandatory,
    ),
    VerifyClaim(
        id="S52",
        name="dead-lettering",
        group="order",
        documented="A message that cannot be processed can be rejected to a dead-letter exchange; x-death keeps the "
        "count.",
        source=RELIABILITY,
        check=dead_letter,
    ),
)

"""Claims about the position of requeued messages, and about endless requeue loops."""

import time
from collections.abc import Sequence

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.fixtures import fill, numbers, ready, since
from probes.verify.sources import CONFIRMS, SEMANTICS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_KINDS = ("classic", "quorum")
_ROUNDS = 100
"""Deliveries of one message after which the loop counts as endless. The highest known default limit is 20."""


async def place(ground: CheckContext) -> Observed:
    """Check claim S09."""
    evidence, remaining, ended = [], {}, False
    async with await ground.client("S09") as client:
        for kind in _KINDS:
            middle = await _after(ground, client, f"s09.{kind}.one", kind, requeue=(3,))
            every = await _after(ground, client, f"s09.{kind}.all", kind, requeue=(5, 1, 3, 2, 4))
            closed = await _after(ground, client, f"s09.{kind}.closed", kind, requeue=())
            beside = await _beside(ground, client, f"s09.{kind}.beside", kind)
            ended = ended or middle[-1:] == [2]
            remaining[kind] = (
                middle == [2, 5, 6, 7, 8, 9],
                every == list(range(10)),
                closed == list(range(10)),
                beside == [0, 2, 4, 6, 7, 8, 9],
            )
            evidence += [
                f"{kind}, 0 to 4 of 10 held, 2 requeued: then in the queue {middle}",
                f"{kind}, 0 to 4 requeued one by one in the order 4 0 2 1 3: {every}",
                f"{kind}, 0 to 4 held, their channel closed: {closed}",
                f"{kind}, two channels hold 0 2 4 and 1 3 5, the first requeues: {beside}",
            ]
    holds = all(all(parts) for parts in remaining.values())
    broken = [kind for kind, parts in remaining.items() if not all(parts)]
    where = "at its end" if ended else "at its head, in the order of the requeues"
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="requeued messages are in the place of their publication, alone and beside another consumer"
        if holds
        else f"a {' or '.join(broken)} queue put what was requeued {where}",
        evidence=tuple(evidence),
        because=_why_moved(ground, broken),
    )


def _why_moved(ground: CheckContext, broken: Sequence[str]) -> str:
    if broken != ["quorum"]:
        return ""
    if ground.version < (4, 0, 0):
        return (
            "a quorum queue without a delivery limit puts what is returned at its end, so that its log can be cut "
            "(quorum queues guide, Repeated Requeues; rabbitmq-server #3776)"
        )
    return (
        "a quorum queue with a delivery limit, since 4.0 every one (rabbitmq-server #11937), returns near the head "
        "(quorum queues guide, Repeated Requeues)"
    )


async def _after(ground: CheckContext, client: Client, name: str, kind: str, *, requeue: Sequence[int]) -> list[int]:
    """Return the content of a queue of 10 messages after a channel that held messages 0 to 4 requeued some.

    It requeues the tags in `requeue`. If there are none, it closes instead.
    """
    channel = await client.channel()
    queue = await ground.queue(channel, name, kind)
    await fill(client, queue, 10)
    for _ in range(5):
        await channel.get(queue)
    for tag in requeue:
        channel.nack(tag)
    if not requeue:
        await channel.close()
    looker = await client.channel()
    await ready(looker, queue, 5 + len(requeue) if requeue else 10)
    found = await _drained(looker, queue)
    if requeue:
        await channel.close()
    return found


async def _beside(ground: CheckContext, client: Client, name: str, kind: str) -> list[int]:
    """Return the content of a queue of 10 messages after one of two channels requeued its messages.

    The two channels held messages 0 to 5 in turn.
    """
    first, second = await client.channel(), await client.channel()
    queue = await ground.queue(first, name, kind)
    await fill(client, queue, 10)
    for _ in range(3):
        await first.get(queue)
        await second.get(queue)
    first.nack(3, multiple=True)
    looker = await client.channel()
    await ready(looker, queue, 7)
    found = await _drained(looker, queue)
    await first.close()
    await second.close()
    return found


async def _drained(channel: RawChannel, queue: str) -> list[int]:
    found = []
    while (item := await channel.get(queue, auto_ack=True)) is not None:
        found.append(item)
    return numbers(found)


async def loop(ground: CheckContext) -> Observed:
    """Check claim S13."""
    async with await ground.client("S13") as client:
        watcher = await client.channel()
        classic = await ground.queue(watcher, "s13")
        await fill(client, classic, 10)
        rate = await _spin(client, classic)
        left = await ready(watcher, classic, 10)
        ends = {}
        for how in ("nack", "reject"):
            quorum = await ground.queue(watcher, f"s13.{how}", "quorum")
            await fill(client, quorum, 1)
            rounds = await _rounds(client, quorum, how)
            ends[how] = rounds, await ready(watcher, quorum, 1, 0.5)
    limited = {how for how, (_, remaining) in ends.items() if not remaining}
    holds = rate > 0 and left == 10 and limited == _limited(ground.version)
    drops = " and ".join(f"{rounds} by {how}" for how, (rounds, remaining) in ends.items() if not remaining)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"in a classic queue 10 messages went round {rate:.0f} times a second without an end; "
        "in a quorum queue " + (f"one was dropped after deliveries: {drops}" if drops else "there was no end either"),
        evidence=(
            f"classic, all nacked with requeue for 1 s: {rate:.0f} redeliveries/s, {left} of 10 still there",
            *(
                f"quorum without x-delivery-limit, one message, each time {how} with requeue: {rounds} deliveries, "
                + (f"then stopped by this check ({remaining} still there)" if remaining else "then it was dropped")
                for how, (rounds, remaining) in ends.items()
            ),
        ),
        because=_LIMITS.get(len(limited), ""),
    )


def _limited(version: tuple[int, ...]) -> set[str]:
    """Return the methods that count towards the delivery limit of a quorum queue and so end the loop."""
    if version < (4, 0, 0):
        return set()
    return {"nack", "reject"} if version < (4, 3, 0) else {"reject"}


_LIMITS = {
    2: "since 4.0 a quorum queue has a delivery limit of 20 by default (rabbitmq-server #11937)",
    1: "since 4.0 a quorum queue has a delivery limit of 20 by default (rabbitmq-server #11937); since 4.3 basic.nack "
    "does not count towards it, basic.reject does (rabbitmq-server #15387, #13885)",
}
"""Reason why the loop ends, by the number of methods (nack, reject) that end it."""


async def _spin(client: Client, queue: str) -> float:
    channel = await client.channel()
    await channel.consume(queue)
    settled, began = 0, time.monotonic()
    while time.monotonic() - began < 1.0:
        came = await since(channel, settled)
        for item in came:
            channel.nack(item.tag)
        settled += len(came)
    rate = settled / (time.monotonic() - began)
    await channel.close()
    return rate


async def _rounds(client: Client, queue: str, how: str) -> int:
    """Requeue one message at each delivery. Returns the number of deliveries, up to `_ROUNDS`."""
    channel = await client.channel()
    await channel.consume(queue)
    count = 0
    while count < _ROUNDS and len(await channel.deliveries(count + 1, 1.0)) > count:
        count += 1
        (channel.nack if how == "nack" else channel.reject)(count)
    await channel.close()
    return count


CLAIMS = (
    VerifyClaim(
        id="S09",
        name="requeue-position",
        group="delivery",
        documented="A requeued message goes to its original place if it can, else nearer to the head; since 2.7.0 the "
        "queue keeps the order of publication through requeue and channel close.",
        source=f"{CONFIRMS}; {SEMANTICS}",
        check=place,
    ),
    VerifyClaim(
        id="S13",
        name="requeue-loop",
        group="delivery",
        documented="If every consumer requeues, a loop of requeue and redelivery arises, at a cost in network and CPU.",
        source=CONFIRMS,
        check=loop,
        alone=True,
    ),
)

"""Claims about transactions: effects of commit and rollback, and what neither of them affects."""

import asyncio
import time

from pika import spec

from probes.verify.channel import RawChannel
from probes.verify.client import Client
from probes.verify.frames import Closed, Return
from probes.verify.requests import no_queue, one
from probes.verify.sources import SEMANTICS
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_PAUSE = 0.2
"""Seconds to wait for an effect that must not occur."""


async def scope(ground: CheckContext) -> Observed:
    """Check claim S37."""
    async with await ground.client("S37") as client:
        channel, watcher = await _transactional(client), await client.channel()
        queue = await ground.queue(watcher, "s37")
        doomed = await ground.queue(watcher, "s37.deleted")
        for body in (b"acked", b"rejected"):
            watcher.publish(queue, body)
        got = [await one(channel, queue), await one(channel, queue)]
        channel.ack(got[0].tag)
        channel.reject(got[1].tag, requeue=False)
        channel.publish(queue, b"published")
        made = await ground.queue(channel, "s37.declared")
        await channel.delete(doomed)
        await channel.consume(made)
        await _rollback(channel)
        published = (await watcher.look(queue)).messages
        declared = await watcher.look(made)
        gone = await no_queue(client, doomed)
        # Closing the channel requeues messages that are still unacked.
        await channel.close()
        await asyncio.sleep(_PAUSE)
        back = (await watcher.look(queue)).messages
    holds = published == 0 and back == 2 and declared.consumers == 1 and gone
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="a rollback undid the publish, the ack and the reject; the declared queue, the deletion and the "
        "consumer stayed"
        if holds
        else "a rollback undid something else than publishes, acks and rejects",
        evidence=(
            "in one transaction: publish, ack, reject, queue.declare, queue.delete, basic.consume; then tx.rollback",
            f"of the publish: {published} messages in the queue",
            f"of the ack and the reject: {back} of 2 messages back in the queue after the channel closed",
            f"of the declare and the consume: the queue exists, with {declared.consumers} consumer",
            f"of the delete: the queue is {'gone' if gone else 'there again'}",
        ),
    )


async def visible(ground: CheckContext) -> Observed:
    """Check claim S38."""
    async with await ground.client("S38") as client, await ground.client("S38 watcher") as other:
        channel, watcher = await _transactional(client), await other.channel()
        queue = await ground.queue(watcher, "s38")
        for _ in range(10):
            channel.publish(queue)
        await asyncio.sleep(_PAUSE)
        before = (await watcher.look(queue)).messages
        got = await watcher.get(queue)
        await _commit(channel)
        after = (await watcher.look(queue)).messages
        for _ in range(10):
            channel.publish(queue)
        await _rollback(channel)
        await _commit(channel)
        await asyncio.sleep(_PAUSE)
        undone = (await watcher.look(queue)).messages
    holds = before == 0 and got is None and after == undone == 10
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="nothing is visible before the commit, everything after; a rollback discards it"
        if holds
        else "a publish showed before its commit, or after a rollback",
        evidence=(
            (
                f"10 published, {_PAUSE:g} s later another connection sees {before} and gets "
                f"{'nothing' if got is None else 'one'}"
            ),
            f"after tx.commit: {after}",
            f"10 more, tx.rollback, then an empty tx.commit: {undone}",
        ),
    )


async def rollback(ground: CheckContext) -> Observed:
    """Check claim S39."""
    async with await ground.client("S39") as client, await ground.client("S39 watcher") as other:
        channel, watcher = await _transactional(client), await other.channel()
        queue = await ground.queue(watcher, "s39")
        for _ in range(3):
            watcher.publish(queue)
        tags = [(await one(channel, queue)).tag for _ in range(3)]
        for tag in tags:
            channel.ack(tag)
        await _rollback(channel)
        await asyncio.sleep(_PAUSE)
        requeued = (await watcher.look(queue)).messages
        again = "accepted"
        try:
            for tag in tags:
                channel.ack(tag)
            await _commit(channel)
        except Closed as error:
            again = str(error)
        await channel.close()
        await asyncio.sleep(_PAUSE)
        left = (await watcher.look(queue)).messages
    holds = requeued == 0 and again == "accepted" and left == 0
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="a rollback leaves what was consumed unacknowledged with its consumer; a later commit acknowledges it"
        if holds
        else "a rollback requeued, or the same tags could not be acknowledged again",
        evidence=(
            "3 messages got and acked in a transaction, then tx.rollback",
            f"ready in the queue {_PAUSE:g} s after: {requeued}",
            f"the same 3 tags acked again and tx.commit: {again}; left after the channel closed: {left}",
        ),
    )


async def errors(ground: CheckContext) -> Observed:
    """Check claim S40."""
    evidence, codes = [], []
    async with await ground.client("S40") as client:
        maker = await client.channel()
        internal = f"{ground.prefix}.s40.internal"
        ground.exchanges.append(internal)
        method = spec.Exchange.Declare(exchange=internal, type="fanout", durable=True, auto_delete=True, internal=True)
        await maker.call(method, spec.Exchange.DeclareOk)
        for what, exchange in (("an unknown", f"{ground.prefix}.s40.none"), ("an internal", internal)):
            channel = await _transactional(client)
            began = time.monotonic()
            channel.publish("", exchange=exchange)
            ended = await channel.end(5.0)
            codes.append(ended.code if ended else 0)
            evidence.append(
                f"publish to {what} exchange, no commit: "
                + (f"{ended.code} after {1000 * (time.monotonic() - began):.1f} ms" if ended else "no error in 5 s")
            )
        channel = await _transactional(client)
        commits = channel.mark(spec.Tx.CommitOk)
        channel.publish(f"{ground.prefix}.s40.nowhere", mandatory=True)
        await asyncio.sleep(_PAUSE)
        early = len(channel.frames(Return))
        await _commit(channel)
        returned = len(channel.frames(Return))
        before = sum(isinstance(frame, Return) for frame in channel.log[: commits[0]])
        await maker.delete_exchange(internal)
    holds = codes == [404, 403] and returned == before == 1
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="errors close the channel at once, without a commit; the return of an unroutable message comes "
        "before commit-ok"
        if holds
        else "an error waited for the commit, or a return came after commit-ok",
        evidence=(
            *evidence,
            (
                f"mandatory publish without a queue: {early} returns before tx.commit was sent, {before} of "
                f"{returned} before commit-ok"
            ),
            "not shown: a missing permission, also a 403; it would take a second user",
        ),
    )


async def committed(ground: CheckContext) -> Observed:
    """Check claim S41."""
    rounds, at_once = 20, 0
    async with await ground.client("S41") as client, await ground.client("S41 watcher") as other:
        channel, watcher = await _transactional(client), await other.channel()
        queue = await ground.queue(watcher, "s41")
        quorum = await ground.queue(watcher, "s41.quorum", "quorum")
        for number in range(1, rounds + 1):
            channel.publish(queue)
            channel.publish(quorum)
            await _commit(channel)
            seen = [(await watcher.look(name)).messages for name in (queue, quorum)]
            at_once += seen == [number, number]
        channel.ack((await one(channel, queue)).tag)
        await _commit(channel)
        await channel.close()
        await asyncio.sleep(_PAUSE)
        left = (await watcher.look(queue)).messages
    holds = at_once == rounds and left == rounds - 1
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="at each commit-ok the messages were in their queues, seen from another connection; a committed ack "
        "stays"
        if holds
        else "a commit-ok came before its messages were visible, or a committed ack was lost",
        evidence=(
            (
                f"{rounds} commits of one message to a classic and one to a quorum queue: visible at commit-ok "
                f"{at_once} times"
            ),
            f"one message acked and committed, then the channel closed: {left} of {rounds} left",
            "that an ack was only received, not carried out, when commit-ok comes cannot be seen from outside",
        ),
    )


async def atomic(ground: CheckContext) -> Observed:
    """Check claim S42."""
    async with await ground.client("S42") as client, await ground.client("S42 watcher") as other:
        channel, watcher = await _transactional(client), await other.channel()
        queues = [await ground.queue(watcher, f"s42.{number}") for number in range(5)]
        for queue in queues:
            channel.publish(queue)
        await asyncio.sleep(_PAUSE)
        before = sum([(await watcher.look(queue)).messages for queue in queues])
        await _commit(channel)
        after = sum([(await watcher.look(queue)).messages for queue in queues])
    return Observed(
        verdict=ClaimVerdict.INCONCLUSIVE,
        observed="not provable from outside: that a promise is not made shows only when a broker fails between two "
        "queues of one commit",
        evidence=(f"one transaction over 5 queues: {before} messages visible before the commit, {after} of 5 after",),
        because="no client can time a failure to the microseconds between two queues; the broker works through them "
        "one after another, without an undo (rabbit_channel, tx.commit)",
    )


async def _transactional(client: Client) -> RawChannel:
    channel = await client.channel()
    await channel.call(spec.Tx.Select(), spec.Tx.SelectOk)
    return channel


async def _commit(channel: RawChannel) -> None:
    await channel.call(spec.Tx.Commit(), spec.Tx.CommitOk)


async def _rollback(channel: RawChannel) -> None:
    await channel.call(spec.Tx.Rollback(), spec.Tx.RollbackOk)


CLAIMS = (
    VerifyClaim(
        id="S37",
        name="what-is-transactional",
        group="transactions",
        documented="Publishes, acks and rejects are transactional; declares, deletes and consuming are not.",
        source=SEMANTICS,
        check=scope,
    ),
    VerifyClaim(
        id="S38",
        name="invisible-until-commit",
        group="transactions",
        documented="Published messages are not visible before the commit; a rollback discards them.",
        source=SEMANTICS,
        check=visible,
    ),
    VerifyClaim(
        id="S39",
        name="rollback-does-not-requeue",
        group="transactions",
        documented="A rollback does not requeue what was consumed; it can be acknowledged again in a later "
        "transaction.",
        source=SEMANTICS,
        check=rollback,
    ),
    VerifyClaim(
        id="S40",
        name="errors-at-once",
        group="transactions",
        documented="Errors are raised at once, not at the commit; the return of an unroutable message comes before "
        "commit-ok (since 2.8).",
        source=SEMANTICS,
        check=errors,
    ),
    VerifyClaim(
        id="S41",
        name="commit-ok",
        group="transactions",
        documented="commit-ok means that the effects are visible and the broker took responsibility for the "
        "publishes; of acks only that they were received.",
        source=SEMANTICS,
        check=committed,
    ),
    VerifyClaim(
        id="S42",
        name="no-atomicity-over-queues",
        group="transactions",
        documented="Atomicity is promised neither across queues nor over a failure of the broker.",
        source=SEMANTICS,
        check=atomic,
    ),
)

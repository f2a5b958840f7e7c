"""Claims about the protocol of publisher confirms: selection, sequence numbers, and unroutable messages."""

import asyncio

from pika import spec

from probes.verify.frame_counters import tallied
from probes.verify.frames import Closed, Confirm, Return
from probes.verify.sources import CONFIRMS, TRANSLATION
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_BURST = 200


async def select(ground: CheckContext) -> Observed:
    """Check claim S22."""
    async with await ground.client("S22") as client:
        asked, quiet = await client.channel(), await client.channel()
        answers, unasked = asked.mark(spec.Confirm.SelectOk), quiet.mark(spec.Confirm.SelectOk)
        queue = await ground.queue(asked, "s22")
        await asked.confirm_select()
        quiet.send(spec.Confirm.Select(nowait=True))
        quiet.publish(queue)
        await quiet.settled()
        confirms = quiet.frames(Confirm)
        await asyncio.sleep(0.1)
    holds = len(answers) == 1 and not unasked and [item.tag for item in confirms] == [1]
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="select-ok answers confirm.select; with no-wait none comes and the channel confirms all the same",
        evidence=(
            f"confirm.select: {len(answers)} select-ok",
            f"confirm.select with no-wait: {len(unasked)} select-ok",
            f"then one publish: {_confirms_text(confirms)}",
        ),
    )


async def exclude(ground: CheckContext) -> Observed:
    """Check claim S23."""
    evidence, codes = [], []
    async with await ground.client("S23") as client:
        for first, answer, second, other in (
            (spec.Confirm.Select, spec.Confirm.SelectOk, spec.Tx.Select, spec.Tx.SelectOk),
            (spec.Tx.Select, spec.Tx.SelectOk, spec.Confirm.Select, spec.Confirm.SelectOk),
        ):
            channel = await client.channel()
            await channel.call(first(), answer)
            try:
                await channel.call(second(), other)
                refused = Closed(0, "accepted")
            except Closed as error:
                refused = error
            codes.append(refused.code)
            evidence.append(f"{first.NAME} then {second.NAME}: {refused}")
    return Observed(
        verdict=ClaimVerdict.HOLDS if codes == [406, 406] else ClaimVerdict.DIFFERS,
        observed="each refuses the other and closes the channel"
        if codes == [406, 406]
        else "a channel entered both modes, or was refused otherwise than with 406",
        evidence=tuple(evidence),
    )


async def sequence(ground: CheckContext) -> Observed:
    """Check claim S24."""
    async with await ground.client("S24") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s24")
        for _ in range(3):
            channel.publish(queue)
        await channel.confirm_select()
        channel.published = 0
        for _ in range(5):
            channel.publish(queue)
            await channel.settled()
        single = [item.tag for item in channel.frames(Confirm)]
        await channel.confirm_select()
        for _ in range(_BURST):
            channel.publish(queue)
        complete = await channel.settled()
        tally = tallied(channel.log)
        held = (await channel.look(queue)).messages
    several = [item for item in channel.frames(Confirm) if item.multiple]
    holds = single == [1, 2, 3, 4, 5] and complete and tally.acked == set(range(1, _BURST + 6)) and not tally.again
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="publishes before confirm.select are not counted; those after are acked by their number from 1, "
        "also after a second confirm.select"
        if holds
        else "the numbers in the acks are not those of the publishes",
        evidence=(
            f"3 publishes before confirm.select, then 5 one by one: acks for {single}",
            (
                f"a second confirm.select, then {_BURST} at once: {tally.frames - 5} frames, {len(several)} of them "
                f"`multiple`, settled {len(tally.acked) - 5}; one frame covered up to {tally.covered}"
            ),
            f"messages in the queue: {held} of {_BURST + 8}",
        ),
    )


async def once(ground: CheckContext) -> Observed:
    """Check claim S25."""
    async with await ground.client("S25") as client:
        channel = await client.channel()
        plain = await ground.queue(channel, "s25")
        full = await ground.queue(channel, "s25.full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        await channel.confirm_select()
        for _ in range(_BURST):
            channel.publish(plain)
            channel.publish(full)
        complete = await channel.settled()
        # A second confirm of the same message would arrive soon after the first.
        await asyncio.sleep(0.2)
        tally = tallied(channel.log)
    both = tally.acked & tally.nacked
    holds = complete and not both and not tally.again and bool(tally.nacked)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"{2 * _BURST} messages, each settled once: {len(tally.acked)} acked, {len(tally.nacked)} nacked"
        if holds
        else f"{len(both)} both acked and nacked, {len(tally.again)} settled twice, {2 * _BURST - tally.settled} not "
        "settled",
        evidence=(
            f"{_BURST} to a plain queue and {_BURST} to a full one (reject-publish), alternating on one channel",
            (
                f"{tally.frames} frames expanded by `multiple`: {len(tally.acked)} acked, {len(tally.nacked)} nacked, "
                f"{len(both)} both, {len(tally.again)} twice"
            ),
        ),
    )


async def unroutable(ground: CheckContext) -> Observed:
    """Check claim S27."""
    nowhere = f"{ground.prefix}.s27.nowhere"
    async with await ground.client("S27") as client:
        channel = await client.channel()
        await channel.confirm_select()
        channel.publish(nowhere)
        silent = await channel.settled()
        before = list(channel.log)
        channel.publish(nowhere, mandatory=True)
        all_settled = await channel.settled()
        after = channel.log[len(before) :]
    nacked = tallied(channel.log).nacked
    returned, confirmed = [type(frame) for frame in after], [type(frame) for frame in before]
    holds = silent and all_settled and confirmed == [Confirm] and returned == [Return, Confirm] and not nacked
    first = after[0] if after else None
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="without a queue the message is acked; with mandatory the return comes first, then the ack"
        if holds
        else "other frames came back, or in another order",
        evidence=(
            f"to a key without a queue: {_confirms_text([item for item in before if isinstance(item, Confirm)])}",
            "the same with mandatory: "
            + (f"return {first.code} {first.text}, then " if isinstance(first, Return) else "no return first; ")
            + _confirms_text([item for item in after if isinstance(item, Confirm)]),
        ),
    )


async def immediate(ground: CheckContext) -> Observed:
    """Check claim S28."""
    async with await ground.client("S28") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s28")
        channel.publish(queue, immediate=True)
        await asyncio.wait({client.closed}, timeout=5.0)
        ended = client.closed.result() if client.closed.done() else None
    return Observed(
        verdict=ClaimVerdict.HOLDS if ended is not None and ended.code == 540 else ClaimVerdict.DIFFERS,
        observed="a publish with immediate ends the whole connection: 540 NOT_IMPLEMENTED"
        if ended is not None and ended.code == 540
        else "a publish with immediate was not refused as expected",
        evidence=(f"one publish with immediate: connection {'closed, ' + str(ended) if ended else 'still open'}",),
    )


def _confirms_text(confirms: list[Confirm]) -> str:
    return ", ".join(f"{'nack' if item.nacked else 'ack'} {item.tag}" for item in confirms) or "no confirm"


CLAIMS = (
    VerifyClaim(
        id="S22",
        name="confirm-select",
        group="confirms",
        documented="confirm.select is answered by select-ok, unless no-wait.",
        source=CONFIRMS,
        check=select,
    ),
    VerifyClaim(
        id="S23",
        name="tx-excludes-confirm",
        group="confirms",
        documented="A transactional channel cannot enter confirm mode, and a confirming one cannot become "
        "transactional.",
        source=CONFIRMS,
        check=exclude,
    ),
    VerifyClaim(
        id="S24",
        name="confirm-sequence",
        group="confirms",
        documented="Publishes count from 1 at the first confirm.select; an ack carries that number, and with "
        "multiple covers all up to it.",
        source=CONFIRMS,
        check=sequence,
    ),
    VerifyClaim(
        id="S25",
        name="confirmed-exactly-once",
        group="confirms",
        documented="Every message in confirm mode is acked or nacked once, never both.",
        source=CONFIRMS,
        check=once,
    ),
    VerifyClaim(
        id="S27",
        name="unroutable-confirmed",
        group="confirms",
        documented="An unroutable message is confirmed once the exchange has found no queue; with mandatory a "
        "basic.return comes first.",
        source=CONFIRMS,
        check=unroutable,
    ),
    VerifyClaim(
        id="S28",
        name="immediate-refused",
        group="confirms",
        documented="The immediate flag is not supported (since 3.0).",
        source=TRANSLATION,
        check=immediate,
    ),
)

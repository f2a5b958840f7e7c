"""Claims about when a message is confirmed, depending on queue type and majority, about refusals, and restarts."""

import time

from probes.verify.channel import RawChannel
from probes.verify.frame_counters import out_of_order, quantile, spread, tallied
from probes.verify.frames import Confirm
from probes.verify.load import BOUND, one_by_one
from probes.verify.sources import CONFIRMS, RELIABILITY, TRANSLATION
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Disturb, Observed, VerifyClaim

_MANY = 100
_SILENCE = 3.0
"""Seconds without a confirm after which none is expected. With a majority a confirm takes milliseconds."""


async def persisted(ground: CheckContext) -> Observed:
    """Check claim S29."""
    async with await ground.client("S29") as client:
        channel = await client.channel()
        classic = await ground.queue(channel, "s29", arguments=BOUND)
        quorum = await ground.queue(channel, "s29.quorum", "quorum", arguments=BOUND)
        await channel.confirm_select()
        # The first publish to a quorum queue also registers the channel with its leader.
        await one_by_one(channel, quorum, 1)
        nowhere = await one_by_one(channel, f"{ground.prefix}.s29.nowhere", _MANY)
        transient = await one_by_one(channel, classic, _MANY, persistent=False)
        persistent = await one_by_one(channel, classic, _MANY)
        replicated = await one_by_one(channel, quorum, _MANY)
        held = (await channel.look(classic)).messages
        stored = (await channel.look(quorum)).messages
        tally = tallied(channel.log)
        disturb = ground.disturb
        if disturb is not None and len(disturb.nodes) >= 3:
            holds, majority = await _majority(channel, disturb, quorum)
        else:
            holds, majority = True, "not shown: that a majority is needed takes three nodes that may be stopped (--lab)"
    holds = holds and held == 2 * _MANY and stored == _MANY + 1 and not tally.nacked
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="what is confirmed is in its queues; each further step before the confirm has its price"
        if holds
        else "a message was confirmed that its queue had not taken as documented",
        evidence=(
            f"no queue: {spread(nowhere)}",
            f"transient, classic: {spread(transient)}",
            f"persistent, classic: {spread(persistent)}",
            f"persistent, quorum: {spread(replicated)}",
            (
                f"after the last confirm the classic queue held {held} of {2 * _MANY}, the quorum queue {stored} of "
                f"{_MANY + 1}"
            ),
            f"majority: {majority}",
        ),
    )


async def _majority(channel: RawChannel, disturb: Disturb, quorum: str) -> tuple[bool, str]:
    """Check that a quorum queue confirms nothing with 1 of 3 nodes running, and confirms with 2 running.

    Returns whether this holds, and a text of what was observed.
    """
    stopped = []
    try:
        for node in (2, 1):
            await disturb.stop(node)
            stopped.append(node)
        channel.publish(quorum)
        early = await channel.settled(_SILENCE)
        await disturb.start(stopped.pop())
        began = time.monotonic()
        late = await channel.settled(30.0)
        took = time.monotonic() - began
    finally:
        for node in reversed(stopped):
            await disturb.start(node)
    text = (
        f"with 1 of 3 nodes running {'a' if early else 'no'} confirm within {_SILENCE:g} s; "
        f"{f'confirmed {took:.1f} s after' if late else 'not confirmed when'} the second was up again"
    )
    return not early and late, text


async def consumed_first(ground: CheckContext) -> Observed:
    """Check claim S30."""
    async with await ground.client("S30") as client, await ground.client("S30 consumer") as other:
        channel, consumer, hoarder = await client.channel(), await other.channel(), await other.channel()
        resting = await ground.queue(channel, "s30.rest", arguments=BOUND)
        consumed = await ground.queue(channel, "s30", arguments=BOUND)
        hoarded = await ground.queue(channel, "s30.held", arguments=BOUND)
        await channel.confirm_select()
        await consumer.consume(consumed, auto_ack=True)
        # This consumer is the control: without acknowledgements it must not make confirms faster.
        await hoarder.consume(hoarded)
        without, with_one, unacked = [], [], []
        # Publish to the three queues in turn, so that other load on the machine affects all of them equally.
        for _ in range(2 * _MANY):
            without += await one_by_one(channel, resting, 1)
            with_one += await one_by_one(channel, consumed, 1)
            unacked += await one_by_one(channel, hoarded, 1)
        came = len(await consumer.deliveries(2 * _MANY))
    before, after, held = (quantile(part, 0.5) for part in (without, with_one, unacked))
    sooner = after < 0.8 * min(before, held)
    return Observed(
        verdict=ClaimVerdict.HOLDS if sooner else ClaimVerdict.INCONCLUSIVE,
        observed=f"where a consumer acknowledges at once the median confirm takes {100 * after / before:.0f} % of the "
        f"time "
        "that it takes where nobody consumes: the acknowledgement, not the write, brings it"
        if sooner
        else "an acknowledgement made the confirm no sooner than the write did: which was first cannot be told from "
        "outside",
        evidence=(
            f"persistent, classic, by turns, nobody consumes: {spread(without)}",
            f"the same, a consumer with automatic acknowledgement: {spread(with_one)}; it received {came}",
            f"the same, a consumer that acknowledges nothing: {spread(unacked)}",
        ),
    )


async def order(ground: CheckContext) -> Observed:
    """Check claim S33."""
    async with await ground.client("S33") as client:
        channel, mixed = await client.channel(), await client.channel()
        classic = await ground.queue(channel, "s33")
        quorum = await ground.queue(channel, "s33.quorum", "quorum")
        fanout = await ground.exchange(channel, "s33.fanout")
        for queue in (classic, quorum):
            await channel.bind(queue, fanout)
        await channel.confirm_select()
        for _ in range(3 * _MANY):
            channel.publish(classic)
        settled = await channel.settled()
        plain = channel.frames(Confirm)
        await mixed.confirm_select()
        for _ in range(_MANY):
            mixed.publish("", exchange=fanout)
            mixed.publish(classic)
            mixed.publish(f"{ground.prefix}.s33.nowhere")
        settled = await mixed.settled() and settled
        uneven = mixed.frames(Confirm)
    late, strays = out_of_order(uneven), out_of_order(plain)
    example = f", such as {late[0][1]} after {late[0][0]}" if late else ""
    return Observed(
        verdict=ClaimVerdict.HOLDS if settled and len(strays) < len(plain) / 2 else ClaimVerdict.DIFFERS,
        observed=f"in order to one queue; {len(late)} of {len(uneven)} confirm frames out of order when queues differ"
        if late
        else f"in order throughout: a confirm out of order could not be seen in {3 * _MANY} messages",
        evidence=(
            f"{3 * _MANY} messages to one classic queue: {len(plain)} confirm frames, {len(strays)} out of order",
            (
                f"{3 * _MANY} messages on one channel by turns to a fan-out (classic and quorum queue), to the "
                f"classic queue, to no queue: {len(uneven)} confirm frames, {len(late)} with a lower number than one "
                f"before{example}"
            ),
        ),
    )


async def refused(ground: CheckContext) -> Observed:
    """Check claim S34."""
    limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
    evidence, outcomes = [], []
    async with await ground.client("S34") as client:
        channel = await client.channel()
        full = await ground.queue(channel, "s34.full", arguments=limits)
        other = await ground.queue(channel, "s34")
        fanout = await ground.exchange(channel, "s34.fanout")
        for queue in (full, other):
            await channel.bind(queue, fanout)
        await channel.confirm_select()
        for what, queue, exchange, expected in (
            ("to a queue of one place, empty", full, "", False),
            ("to the same, now full", full, "", True),
            ("fan-out to it and to a second, empty queue", "", fanout, True),
        ):
            number = channel.publish(queue, exchange=exchange)
            await channel.settled()
            nacked = number in tallied(channel.log).nacked
            outcomes.append(nacked == expected)
            evidence.append(f"{what}: {'nack' if nacked else 'ack'} {number}")
        held, beside = (await channel.look(full)).messages, (await channel.look(other)).messages
    evidence += [
        f"the full queue holds {held}, the second holds {beside}: it has the message that was nacked",
        "not shown: the crash of a queue process; of `requeue` in the nack the protocol says that it is ignored",
    ]
    holds = all(outcomes) and (held, beside) == (1, 1)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="what a full queue refuses is nacked, also where another queue took it: whoever publishes it again "
        "makes a duplicate there"
        if holds
        else "a full queue did not refuse as documented",
        evidence=tuple(evidence),
    )


async def restart(ground: CheckContext) -> Observed:
    """Check claim S35."""
    assert ground.disturb is not None  # noqa: S101  the claim is of the lab
    async with await ground.client("S35") as client:
        channel = await client.channel()
        durable = await ground.queue(channel, "s35")
        fleeting = await ground.queue(channel, "s35.transient")
        quorum = await ground.queue(channel, "s35.quorum", "quorum")
        await channel.confirm_select()
        for _ in range(_MANY):
            channel.publish(durable)
            channel.publish(fleeting, persistent=False)
            channel.publish(quorum, persistent=False)
        confirmed = await channel.settled()
        nacked = tallied(channel.log).nacked
    began = time.monotonic()
    await ground.disturb.restart()
    took = time.monotonic() - began
    left = {}
    async with await ground.client("S35 after") as client:
        channel = await client.channel()
        for queue in (durable, fleeting, quorum):
            left[queue] = (await channel.look(queue)).messages
    holds = confirmed and not nacked and left[durable] == _MANY and left[fleeting] == 0
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed="every confirmed persistent message was there after the restart, no transient one of a classic queue"
        if holds
        else "the restart did not leave what was confirmed as persistent, and that alone",
        evidence=(
            (
                f"{3 * _MANY} messages, all acked: {confirmed and not nacked}; the broker stopped in order and "
                f"started, {took:.1f} s"
            ),
            f"persistent, classic: {left[durable]} of {_MANY}",
            f"transient, classic: {left[fleeting]} of {_MANY}",
            f"transient, quorum: {left[quorum]} of {_MANY} (a quorum queue writes every message)",
        ),
    )


CLAIMS = (
    VerifyClaim(
        id="S29",
        name="when-a-message-is-confirmed",
        group="confirms",
        documented="A message is confirmed when all its queues have taken it: persistent ones once persisted, "
        "replicated ones once a majority has them.",
        source=f"{CONFIRMS}; {TRANSLATION}",
        check=persisted,
        alone=True,
        seconds=120.0,
    ),
    VerifyClaim(
        id="S30",
        name="consumed-before-written",
        group="confirms",
        documented="A persistent message that is consumed and acknowledged before it was written may be confirmed "
        "then.",
        source=TRANSLATION,
        check=consumed_first,
        alone=True,
    ),
    VerifyClaim(
        id="S33",
        name="order-of-confirms",
        group="confirms",
        documented="Confirms mostly come in the order of publishing, but applications must not rely on it.",
        source=CONFIRMS,
        check=order,
    ),
    VerifyClaim(
        id="S34",
        name="nack-to-publisher",
        group="confirms",
        documented="basic.nack to a publisher says that a queue did not take the message: an internal error, or "
        "overflow with reject-publish; requeue in it means nothing.",
        source=CONFIRMS,
        check=refused,
    ),
    VerifyClaim(
        id="S35",
        name="confirmed-survives-restart",
        group="confirms",
        documented="Confirmed persistent messages survive a restart of the broker; transient ones do not.",
        source=f"{CONFIRMS}; {RELIABILITY}",
        check=restart,
        lab=True,
        seconds=90.0,
    ),
)

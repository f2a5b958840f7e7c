"""Claims about the latency of publisher confirms, and about the rates of confirm strategies and transactions."""

from pika import spec

from probes.verify.frame_counters import spread
from probes.verify.load import BOUND, asynchronously, batched, committed, individually, one_by_one, paced
from probes.verify.sources import CONFIRMS, TRANSLATION
from probes.verify.verify_claim import CheckContext, ClaimVerdict, Observed, VerifyClaim

_SECONDS = 1.0
_BATCH = 100
_FEW_HUNDRED = 0.4
"""Seconds for "a few hundred milliseconds" in the claim."""


async def no_promise(ground: CheckContext) -> Observed:
    """Check claim S26."""
    async with await ground.client("S26") as client:
        channel = await client.channel()
        classic = await ground.queue(channel, "s26", arguments=BOUND)
        quorum = await ground.queue(channel, "s26.quorum", "quorum", arguments=BOUND)
        await channel.confirm_select()
        # The first publish to a quorum queue also registers the channel with its leader.
        first = await one_by_one(channel, quorum, 1)
        few = await paced(channel, classic, rate=200, seconds=0.5)
        replicated = await paced(channel, quorum, rate=200, seconds=0.5)
    waits = few + replicated
    factor = max(waits) / min(waits)
    return Observed(
        verdict=ClaimVerdict.HOLDS,
        observed=f"confirms of one small load took between {1000 * min(waits):.2f} and {1000 * max(waits):.1f} ms, a "
        f"factor of {factor:.0f}: only a limit of one's own bounds the wait",
        evidence=(
            f"classic, 200/s: {spread(few)}",
            f"quorum, 200/s: {spread(replicated)}; the very first on the channel {1000 * first[0]:.1f} ms",
            "no method of the protocol carries a deadline for a confirm",
        ),
    )


async def constant_load(ground: CheckContext) -> Observed:
    """Check claim S31."""
    async with await ground.client("S31") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s31", arguments=BOUND)
        large = await ground.queue(channel, "s31.large", arguments=BOUND)
        await channel.confirm_select()
        idle = await paced(channel, queue, rate=40, seconds=0.75)
        loaded = await paced(channel, queue, rate=1000, seconds=1.5)
        stored = await paced(channel, large, rate=500, seconds=1.0, body=bytes(5000))
    longest = max(*loaded, *stored)
    evidence = (
        f"idle queue, one message each 25 ms: {spread(idle)}",
        f"1000/s for 1.5 s, 1 byte: {spread(loaded)}",
        f"500/s for 1 s, 5000 bytes (shared store): {spread(stored)}",
    )
    if longest >= 0.1:
        return Observed(
            verdict=ClaimVerdict.HOLDS if longest <= 2 * _FEW_HUNDRED else ClaimVerdict.DIFFERS,
            observed=f"under constant load a confirm took up to {1000 * longest:.0f} ms",
            evidence=evidence,
        )
    if ground.version >= (3, 13):
        return Observed(
            verdict=ClaimVerdict.DIFFERS,
            observed=f"no confirm took longer than {1000 * longest:.0f} ms under constant load",
            evidence=(*evidence, "these times alone do not decide, a fast disk gives them too: the cited change does"),
            because="since 3.13 no classic queue waits for fsync before it confirms (rabbitmq-server #8507); its "
            "200 ms timer only bounds a buffer that is flushed as soon as the queue has nothing else to do",
        )
    return Observed(
        verdict=ClaimVerdict.INCONCLUSIVE,
        observed=f"no confirm took longer than {1000 * longest:.0f} ms under constant load, and a broker this old "
        "would show the documented times only on a slower disk",
        evidence=evidence,
        because="before 3.13 a classic queue may sync to disk before it confirms (rabbitmq-server #8507 ended "
        "that): what it costs is the disk's, and this one is too fast to tell",
    )


async def waiting(ground: CheckContext) -> Observed:
    """Check claim S32."""
    async with await ground.client("S32") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s32", arguments=BOUND)
        await channel.confirm_select()
        alone = await individually(channel, queue, _SECONDS)
        second = await client.channel()
        await second.confirm_select()
        together = await batched(second, queue, _SECONDS, _BATCH)
        third = await client.channel()
        await third.confirm_select()
        flowing = await asynchronously(third, queue, _SECONDS)
    holds = min(together, flowing) >= 1.5 * alone and max(together, flowing) <= 4 * min(together, flowing)
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"batches reach {together / alone:.1f} times, asynchronous waiting {flowing / alone:.1f} times the "
        "rate of one by one, over this network",
        evidence=(
            f"one by one: {alone:.0f} messages/s",
            f"batches of {_BATCH}: {together:.0f} messages/s",
            f"asynchronous, 500 outstanding at most: {flowing:.0f} messages/s",
            "persistent messages of 1 byte to a classic queue; the factor grows with the round trip",
        ),
    )


async def transactions(ground: CheckContext) -> Observed:
    """Check claim S36."""
    async with await ground.client("S36") as client:
        channel = await client.channel()
        queue = await ground.queue(channel, "s36", arguments=BOUND)
        quorum = await ground.queue(channel, "s36.quorum", "quorum", arguments=BOUND)
        await channel.call(spec.Tx.Select(), spec.Tx.SelectOk)
        commits = await committed(channel, queue, _SECONDS)
        replicated = await committed(channel, quorum, _SECONDS / 2)
        single = await client.channel()
        await single.confirm_select()
        alone = await individually(single, queue, _SECONDS)
        several = await client.channel()
        await several.confirm_select()
        flowing = await asynchronously(several, queue, _SECONDS)
    factor = flowing / commits
    holds = factor >= 100
    return Observed(
        verdict=ClaimVerdict.HOLDS if holds else ClaimVerdict.DIFFERS,
        observed=f"a commit for each message costs a factor of {factor:.0f} against asynchronous confirms, and "
        f"{alone / commits:.1f} against one by one; documented: 250",
        evidence=(
            f"tx.commit after each message: {commits:.0f} messages/s (classic), {replicated:.0f}/s (quorum)",
            f"confirms, one by one: {alone:.0f} messages/s",
            f"confirms, asynchronous: {flowing:.0f} messages/s",
        ),
        because=""
        if holds
        else "tx.commit is answered when the channel has no unconfirmed message left (rabbit_channel, "
        "maybe_complete_tx): it costs one confirm round trip; no experiment behind the documented figure is known, "
        "the nearest published one (2011) is a factor of 120",
    )


CLAIMS = (
    VerifyClaim(
        id="S26",
        name="no-promise-on-time",
        group="confirms",
        documented="There is no promise on how soon a message is confirmed.",
        source=CONFIRMS,
        check=no_promise,
        alone=True,
    ),
    VerifyClaim(
        id="S31",
        name="confirm-under-constant-load",
        group="confirms",
        documented="Under constant load a persistent confirm can take up to a few hundred milliseconds, because "
        "writes are batched to spare fsync; an idle queue flushes at once.",
        source=CONFIRMS,
        check=constant_load,
        alone=True,
        seconds=45.0,
    ),
    VerifyClaim(
        id="S32",
        name="waiting-strategies",
        group="confirms",
        documented="Asynchronous or batched waiting for confirms beats waiting one by one by a factor; the two "
        "differ little.",
        source=f"{CONFIRMS}; {TRANSLATION}",
        check=waiting,
        alone=True,
    ),
    VerifyClaim(
        id="S36",
        name="transactions-cost",
        group="confirms",
        documented="Transactions instead of confirms cut throughput by a factor of 250.",
        source=CONFIRMS,
        check=transactions,
        alone=True,
    ),
)

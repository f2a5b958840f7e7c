"""probe-message-lost (H04): a message of the delivery probe was confirmed, and did not come.

Either the broker lost it, or something took it away from the probe's own queue: another consumer, a policy, a purge.
"""

from collections.abc import Iterator

from ackscope.findings import Evidence, Finding, Severity, runbook
from ackscope.records import Outcome, ProbeOutcome
from ackscope.snapshot import Queue
from diagnosis.contract import Impact, Rule, RuleResult, View
from diagnosis.rules.probing.outcomes import about, lately, name
from diagnosis.words import amount, list_consumers, place

BOUNDS = ("message-ttl", "max-length", "max-length-bytes", "expires")
"""What of a policy can make messages vanish."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream that misses messages now."""
    for outcome in lately(view, "delivery"):
        # Counted since the probe began; the last minute had something to it as well.
        if outcome.missing and not outcome.success:
            yield _finding(view, outcome, outcome.missing)


RULE = Rule(
    name="probe-message-lost",
    title="a confirmed message of the probe did not come",
    impact=Impact.LOSS,
    needs=(),
    counts=False,
    evaluate=evaluate,
)


def _finding(view: View, outcome: ProbeOutcome, missing: int) -> Finding:
    queue = next((q for q in view.part("queues") if q.key == (outcome.vhost, outcome.queue)), None)
    known = _known(queue)
    acked = outcome.outcomes.get(Outcome.ACKED.value, 0)
    evidence = [
        Evidence(
            what="confirmed and not delivered in time",
            value=f"{missing} of {amount(acked, 'message')} since the probe began",
            expected="0",
            source=f"probe {name(outcome)}, missing",
        )
    ]
    if queue is not None:
        evidence.append(
            Evidence(
                what=f"the probe's queue {queue.name!r}",
                value=f"{queue.consumers} consumers, {queue.messages_ready} ready, policy {queue.policy!r}",
                expected="1 consumer, 0 ready, no policy",
                source="/api/queues consumers, messages_ready, policy",
            )
        )
    return Finding(
        rule=RULE.name,
        severity=Severity.WARNING if known else Severity.CRITICAL,
        subject=about(outcome),
        since=None,
        summary=(
            f"{amount(missing, 'message')} of the probe {name(outcome)} were confirmed and not delivered; "
            + (
                "something disturbs the probe's own queue"
                if known
                else "no reason was found: other queues may lose too"
            )
        ),
        cause=known
        or "The broker confirmed these messages and did not deliver them; nothing else is known to take them.",
        evidence=tuple(evidence),
        next_steps=_steps(queue, outcome),
        runbook=runbook(RULE.name),
    )


def _known(queue: Queue | None) -> str | None:
    """What takes messages from the probe's queue, in a sentence; None where nothing is known to."""
    if queue is None:
        return None
    if (queue.consumers or 0) > 1:
        return f"{(queue.consumers or 0) - 1} other consumers take messages from its queue {queue.name!r}."
    bounds = [key for key in BOUNDS if queue.effective_policy.get(key) is not None]
    if bounds:
        told = ", ".join(f"{key} {queue.effective_policy[key]}" for key in bounds)
        return f"A policy matches the probe's queue {queue.name!r} and bounds it: {queue.policy!r} ({told})."
    return None


def _steps(queue: Queue | None, outcome: ProbeOutcome) -> tuple[str, ...]:
    if queue is None:
        return (f"see whether the probe's queue {outcome.queue!r} is there: rabbitmqctl list_queues name consumers",)
    vhost = place(queue).split()[1]
    return (
        f"see who consumes from the probe's queue: {list_consumers(queue)}",
        f"see which policy matches it, and have its pattern leave out ^ackscope: rabbitmqctl list_policies -p {vhost}",
        "where two ackscope watch one cluster, give each its own probes.prefix",
        "none of that: did a node restart or lose its disk just then? Read its log; count messages of applications too",
    )

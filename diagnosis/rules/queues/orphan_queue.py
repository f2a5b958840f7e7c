"""orphan-queue (C10): a queue that grows and that nobody ever took a message from: a forgotten subscription.

Not the same as no-consumer, where somebody left: here the broker's counters know of no delivery at all. Early proof is
a sibling: another queue that the same exchange fills, and that is consumed.
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.kept import kept
from diagnosis.routes import Place, dead_letter_targets, is_delay
from diagnosis.rules.queues.telling import about, is_private, named, set_policy, so_far
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, place, some

NAME = "orphan-queue"

TAKEN = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")
"""None of these ever moved."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every durable queue without consumers that nobody took from since the broker counts."""
    suspects = [queue for queue in view.queues if _forgotten(queue)]
    if not suspects:
        return
    targets = dead_letter_targets(view)
    for queue in suspects:
        if queue.key in targets or not (queue.stats.publish or 0):
            continue
        alone = stretch(view.history(queue), _alone)
        seconds, limits = span(alone), view.limits(queue)
        if delta(alone, "publish") <= 0 or _ready(alone[-1]) <= _ready(alone[0]):
            continue
        siblings = kept(view, _consumed_siblings).get(queue.key, ())
        if siblings and seconds >= limits.early:
            severity = Severity.WARNING if seconds >= limits.queues.orphan_for else Severity.INFO
            yield _finding(view, queue, alone, siblings, severity)
        elif seconds >= limits.queues.orphan_alone:
            yield _finding(view, queue, alone, (), Severity.WARNING)


def _forgotten(queue: Queue) -> bool:
    return (
        queue.consumers == 0
        and bool(queue.messages_ready)
        and queue.durable is not False
        and queue.type != "stream"
        and count(queue.stats, *TAKEN) == 0
        and not is_private(queue)
        and not is_delay(queue)
        # What keeps the newest few, or what is recent, may be there for people to look at.
        and all(queue.setting(name) is None for name in ("max-length", "max-length-bytes", "message-ttl", "expires"))
    )


def _alone(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return older.value.consumers == newer.value.consumers == 0


def _ready(seen: Seen[Queue]) -> int:
    return seen.value.messages_ready or 0


def _consumed_siblings(view: View) -> dict[Place, tuple[tuple[str, str], ...]]:
    """Queue -> (exchange, queue) pairs: others bound to the same exchange that somebody consumes from."""
    consumed = {queue.key for queue in view.queues if queue.consumers}
    by_exchange: dict[tuple[str, str], set[str]] = {}
    for binding in view.bindings or ():
        if binding.destination_type == "queue":
            by_exchange.setdefault((binding.vhost, binding.source), set()).add(binding.destination)
    found: dict[Place, list[tuple[str, str]]] = {}
    for (vhost, exchange), names in by_exchange.items():
        read = sorted(name for name in names if (vhost, name) in consumed)
        if read:
            for name in names - set(read):
                found.setdefault((vhost, name), []).append((exchange, read[0]))
    return {key: tuple(sorted(pairs)) for key, pairs in found.items()}


def _finding(
    view: View, queue: Queue, alone: Series[Queue], siblings: tuple[tuple[str, str], ...], severity: Severity
) -> FindingReport:
    seconds, waiting = span(alone), queue.messages_ready or 0
    told = so_far(severity, seconds, view.limits(queue).queues.orphan_for, "a consumer that is about to be deployed")
    if siblings:
        pairs = some(f"{other!r} (exchange {exchange!r})" for exchange, other in siblings)
        cause = f"It is bound beside queues that are read, {pairs}, and nobody ever read this one: perhaps forgotten."
    else:
        cause = "Nobody consumed from it or polled it since the broker began to count. Perhaps it is forgotten."
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=alone[0].at.iso(),
        summary=(
            f"Nobody ever read {named(queue)}, and it grows: {amount(waiting, 'message')}, "
            f"{delta(alone, 'publish')} more in {lasting(seconds)}; {told}"
        ),
        cause=cause,
        evidence=(
            EvidenceReport(
                what="ever taken from it",
                value="0 deliveries, 0 gets, 0 acks",
                expected="about as many as were published",
                source="/api/queues message_stats",
            ),
            EvidenceReport(what="consumers", value="0", expected="at least 1", source="/api/queues consumers"),
            EvidenceReport(
                what="published to it",
                value=f"{amount(delta(alone, 'publish'), 'message')} in {lasting(seconds)}",
                source="/api/queues message_stats.publish",
            ),
            EvidenceReport(
                what="waiting", value=amount(waiting, "message"), expected="0", source="/api/queues messages_ready"
            ),
        ),
        next_steps=(
            (
                "ask who made it, and whether its consumer is yet to come: "
                f"rabbitmqctl list_bindings -p {quote(queue.vhost)} | grep -F -- {quote(queue.name)}"
            ),
            f"nobody needs it: delete it with its messages: rabbitmqctl delete_queue {place(queue)} --if-unused",
            f"not sure: bound it meanwhile: {set_policy(queue, 'bound', {'max-length': 10_000})}",
        ),
        runbook=runbook(NAME),
    )

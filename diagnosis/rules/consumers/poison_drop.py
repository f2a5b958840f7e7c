"""poison-drop (B07): a quorum queue deletes messages that came back too often, for it has no dead-letter exchange.

The management API has no counter of it (Prometheus has: `rabbitmq_global_messages_dead_lettered_delivery_limit_total`).
What it has is a balance: published, less acknowledged, less still there. What is missing was dropped, and that it was
by the delivery limit shows in the redeliveries: as many a message as the limit says.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers.commands import set_policy
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series
from diagnosis.words import amount, lasting, list_consumers, place, some, whose

NAME = "poison-drop"

_OTHER_ENDS = ("dead-letter-exchange", "message-ttl", "max-length", "max-length-bytes")
"""What else may take messages away, or keep them."""
_MERGE = "  # it replaces the policy in force: merge the two; declare DLX and a queue bound to it first"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue with a delivery limit and no dead-letter exchange, that redelivered."""
    for queue in view.queues:
        if queue.type != "quorum" or not queue.stats.redeliver or queue.messages is None:
            continue
        limit = delivery_limit(queue)
        if limit is None or any(queue.setting(name) is not None for name in _OTHER_ENDS):
            continue
        history = tuple(seen for seen in view.history(queue) if seen.value.messages is not None)
        lost = _lost(history, view.limits(queue).consumers.poison_seen)
        # One dropped message was delivered once, and then again as often as the limit says.
        if lost > 0 and delta(history, "redeliver") >= lost * max(1, limit) / 2:
            yield _finding(view, queue, history, lost, limit)


def delivery_limit(queue: Queue) -> int | None:
    """How often a message may come back; None where there is no limit. Before 4.0 there is none unless it is set."""
    told = queue.delivery_limit if queue.delivery_limit is not None else queue.setting("delivery-limit")
    return told if isinstance(told, int) and told >= 0 else None


def _missing(queue: Queue) -> int:
    """Messages that came and are neither taken nor there."""
    gone = count(queue.stats, "ack", "deliver_no_ack", "get_no_ack")
    return count(queue.stats, "publish") - gone - (queue.messages or 0)


def _lost(history: Series[Queue], seconds: float) -> int:
    """Messages that went missing, at least; counters and lengths are of different moments, so less is chance."""
    lately = last(history, seconds)
    if len(lately) == len(history) or span(lately) < seconds:
        lately = history[len(history) // 2 :]
    if len(history) < 3:
        lately = history[-1:]
    before = max(_missing(seen.value) for seen in history[:1])
    lost = min(_missing(seen.value) for seen in lately) - before if lately else 0
    return lost if lost > delta(last(history, seconds / 3), "publish") else 0


def _finding(view: View, queue: Queue, history: Series[Queue], lost: int, limit: int) -> FindingReport:
    seconds, again = span(history), delta(history, "redeliver")
    counter = 'rabbitmq_global_messages_dead_lettered_delivery_limit_total{dead_letter_strategy="disabled"}'
    policy = set_policy(queue, "keep-rejects", '{"dead-letter-exchange":"DLX"}')
    evidence = [
        EvidenceReport(
            what="messages that are gone",
            value=f"{lost} in {lasting(seconds)}: published, not acknowledged, and no longer there",
            expected="0",
            source="/api/queues message_stats.publish, ack; messages",
        ),
        EvidenceReport(
            what="redelivered",
            value=f"{again} in {lasting(seconds)}",
            expected="near 0",
            source="/api/queues message_stats.redeliver",
        ),
        EvidenceReport(
            what="delivery limit",
            value=f"{limit}",
            source="/api/queues delivery_limit, or arguments and policy",
        ),
        EvidenceReport(
            what="dead-letter exchange",
            value="none",
            expected="one, with a queue behind it",
            source="/api/queues arguments, effective_policy_definition",
        ),
    ]
    evidence += [
        EvidenceReport(what=whose(link), value="consumes", source="/api/consumers") for link in view.links(queue)[:3]
    ]
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=history[0].at.iso(),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) deleted {amount(lost, 'message')} within {lasting(seconds)} "
            "that its "
            f"consumers gave back more than {limit} times: lost, for it has no dead-letter exchange"
        ),
        cause=(
            "A consumer rejects these messages or dies over them again and again; at its delivery limit a quorum queue "
            "dead-letters a message, and where there is no dead-letter exchange that means it deletes it."
        ),
        evidence=tuple(evidence),
        next_steps=(
            f"stop the loss first, with a dead-letter exchange: {policy} {_MERGE}",
            f"find who gives them back, and stop it if need be: {list_consumers(queue)}",
            f"read that application's log for what it cannot process in {place(queue)}",
            f"confirm it on a node's metrics: curl -s http://NODE:15692/metrics | grep -F '{some([counter])}'",
        ),
        runbook=runbook(NAME),
    )

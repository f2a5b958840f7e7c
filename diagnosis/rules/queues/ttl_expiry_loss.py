"""ttl-expiry-loss (C04): messages expire before a consumer gets to them; the queue looks empty and healthy.

A delay queue (TTL, dead-letter exchange, no consumer) does so by design. Messages that consumers reject do not count as
expired, because the balance excludes delivered messages. The API does not show a message's own `expiration`.
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Evidence, ExchangeRef, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.routes import is_delay
from diagnosis.rules.queues._shared.message_balance import (
    MessageBalance,
    balance_evidence,
    balance_facts,
    losing_run,
)
from diagnosis.rules.queues._shared.queue import (
    certainty,
    involved_queue,
    is_private,
    queue_subject,
    queue_with_policy,
)
from diagnosis.series import span
from diagnosis.window import Series

NAME = "ttl-expiry-loss"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a message TTL that messages are published to."""
    for queue in view.queues:
        ttl = queue.setting("message-ttl")
        if not isinstance(ttl, int) or queue.type == "stream" or is_private(queue) or is_delay(queue):
            continue
        if not view.moved(queue, "publish") or _at_length_limit(view, queue):
            continue
        found = losing_run(view, queue)
        if found is not None:
            yield _finding(view, queue, ttl, *found)


def _at_length_limit(view: View, queue: Queue) -> bool:
    """Return whether the loss may be due to its length limit instead."""
    length = queue.setting("max-length")
    return isinstance(length, int) and (queue.messages_ready or 0) >= view.limits(queue).queues.full_share * length


def _finding(view: View, queue: Queue, ttl: int, run: Series[Queue], found: MessageBalance) -> Finding:
    seconds, limit = span(run), view.limits(queue).queues.expiry_for
    severity = Severity.WARNING if queue.consumers and seconds >= limit else Severity.INFO
    exchange = queue.setting("dead-letter-exchange")
    exchange = exchange if isinstance(exchange, str) else None
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(queue),
            **balance_facts(found),
            "ready": queue.messages_ready or 0,
            "consumers": queue.consumers or 0,
            "ttl_seconds": ttl / 1000,
            "ttl_is_argument": "x-message-ttl" in queue.arguments,
            "longer_ttl_milliseconds": ttl * 10,
            "dead_letter_exchange": exchange,
            "warning_after_seconds": limit,
        },
        accounted=found.lost,
        certainty=certainty(severity, seconds, limit),
        seen_seconds=seconds,
        evidence=(
            *balance_evidence(found),
            Evidence(
                key="ttl",
                value=ttl / 1000,
                unit=Unit.SECONDS,
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready or 0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
        ),
        involved=_involved(view, queue, exchange),
    )


def _involved(view: View, queue: Queue, exchange: str | None) -> Involved:
    involved = involved_queue(queue, view.links(queue))
    return replace(involved, exchanges=(ExchangeRef(queue.vhost, exchange),)) if exchange else involved

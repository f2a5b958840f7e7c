"""dead-letters-expire: dead letters expire in their queue before anybody has looked at them.

The broker does not count dead letters as published. That they arrive shows in the ledgers of the queues that
dead-letter only into this one; what arrived, was not taken, and is not there any more has expired.
Source: https://www.rabbitmq.com/docs/dlx; https://www.rabbitmq.com/docs/ttl
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import Ledger, ledger, levels, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.purpose import had_consumer, was_consumed
from diagnosis.routes import dead_letters_to, is_delay
from diagnosis.rules.publishers._shared.overflow import has_length_limit
from diagnosis.rules.queues._shared.queue import MAX_NAMED, involved_queue, queue_refs, queue_subject
from diagnosis.rules.queues.dlq_filling import dead_letter_sources
from diagnosis.series import readings_since, span, stretch
from diagnosis.window import Series

NAME = "dead-letters-expire"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a TTL and without a way out that others dead-letter into."""
    for key, sources in sorted(per_view(view, dead_letter_sources).items()):
        queue = view.queue(*key)
        if queue is None or not isinstance(queue.setting("message-ttl"), int) or not _ends_here(view, queue):
            continue
        history = view.history(queue)
        if was_consumed(queue) or had_consumer(history) or may_settle_unseen(view, queue):
            continue
        run = stretch(history, lambda _, newer: levels(newer.value) is not None)
        ledgers = [found for each in sources if (found := _ledger(view, each, run)) is not None]
        arrived = sum(each.proven_discarded + each.proven_vanished for each in ledgers)
        stored = _ready(run[-1].value) - _ready(run[0].value) if run else 0
        if arrived - max(0, stored) >= view.limits(queue).queues.loss_least:
            counted = sum(each.discarded + each.vanished for each in ledgers)
            yield _finding(view, queue, sources, run, arrived, counted, stored)


def _ends_here(view: View, queue: Queue) -> bool:
    """Return whether nothing but expiry or a client takes a message from a queue, and what expires is lost."""
    if is_delay(view, queue) or has_length_limit(queue) or queue.type == "stream":
        return False
    return not isinstance(queue.setting("dead-letter-exchange"), str)


def _ledger(view: View, origin: Queue, run: Series[Queue]) -> Ledger | None:
    """Return the ledger of a queue during a run, which shows what it dead-lettered; None if that may go elsewhere."""
    if len(dead_letters_to(view, origin) or ()) != 1 or not run or may_settle_unseen(view, origin):
        return None
    same = readings_since(view.history(origin), run[0].at.mono)
    return ledger(same) if len(same) > 1 else None


def _ready(queue: Queue) -> int:
    return queue.messages_ready or 0


def _finding(
    view: View, queue: Queue, sources: list[Queue], run: Series[Queue], arrived: int, counted: int, stored: int
) -> Finding:
    ttl = queue.setting("message-ttl") / 1000
    soon = ttl < view.limits(queue).queues.dead_letters_retention
    lost = arrived - max(0, stored)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if soon else Severity.INFO,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        accounted=lost,
        facts={
            "queue": queue_facts(queue),
            "lost": lost,
            "arrived": arrived,
            # What the counters say, without regard to the delay between them.
            "likely_lost": max(lost, counted - stored),
            "ready": _ready(queue),
            "over_seconds": span(run),
            "ttl_seconds": ttl,
            "ttl_is_argument": "x-message-ttl" in queue.arguments,
            "source_count": len(sources),
            "sources": [each.name for each in sources[:MAX_NAMED]],
        },
        certainty=Certainty.LIKELY,
        seen_seconds=span(run),
        evidence=(
            Evidence(
                key="arrived",
                value=arrived,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver", "message_stats.ack", "messages"),
            ),
            Evidence(
                key="ready",
                value=_ready(queue),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
                facts={"stored": stored},
            ),
            Evidence(
                key="ttl",
                value=ttl,
                unit=Unit.SECONDS,
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
        ),
        involved=involved_queue(queue, others=queue_refs(sources)),
    )

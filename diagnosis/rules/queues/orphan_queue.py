"""orphan-queue (C10): a queue that grows and that has never been consumed from: a forgotten subscription.

In no-consumer a consumer left; here the broker's counters show no delivery at all. A sibling gives early evidence:
another queue that the same exchange routes to and that is consumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Evidence, ExchangeRef, Finding, Involved, QueueRef, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.memo import per_view
from diagnosis.routes import Place, dead_letter_targets, is_delay
from diagnosis.rules.consumers._shared.arrivals import filling_clients, filling_shovels, passed_on
from diagnosis.rules.queues._shared.queue import certainty, is_private, queue_subject, queue_with_policy
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "orphan-queue"

READS = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")
"""Counters that rise when somebody consumes from a queue or polls it."""


@dataclass(frozen=True, slots=True, order=True)
class Sibling:
    """A queue that is consumed from and bound to the same exchange as another one."""

    exchange: str
    queue: str


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every durable queue without consumers and without any delivery in the broker's counters."""
    suspects = [queue for queue in view.queues if _never_read(queue) and not is_delay(view, queue)]
    if not suspects:
        return
    targets = dead_letter_targets(view)
    for queue in suspects:
        if queue.key in targets or not (queue.stats.publish or 0):
            continue
        run = stretch(view.history(queue), _without_consumers)
        seconds, limits = span(run), view.limits(queue)
        if delta(run, "publish") <= 0 or _ready(run[-1]) <= _ready(run[0]):
            continue
        siblings = per_view(view, _consumed_siblings).get(queue.key, ())
        if siblings and seconds >= limits.early:
            severity = Severity.WARNING if seconds >= limits.queues.orphan_for else Severity.INFO
            yield _finding(view, queue, run, siblings, severity)
        elif seconds >= limits.queues.orphan_alone and not _filled_on_purpose(view, queue):
            yield _finding(view, queue, run, (), Severity.WARNING)


def _never_read(queue: Queue) -> bool:
    return (
        queue.consumers == 0
        and bool(queue.messages_ready)
        and queue.durable is not False
        and queue.type != "stream"
        and count(queue.stats, *READS) == 0
        and not is_private(queue)
        # A queue limited by length or age may be there for people to look at.
        and all(queue.setting(name) is None for name in ("max-length", "max-length-bytes", "message-ttl", "expires"))
    )


def _filled_on_purpose(view: View, queue: Queue) -> bool:
    """Return whether a shovel fills a queue, or a client with all that it takes from others: see no-consumer."""
    return bool(filling_shovels(view, queue)) or passed_on(view, queue, filling_clients(view, queue)) is not None


def _without_consumers(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return older.value.consumers == newer.value.consumers == 0


def _ready(seen: Timestamped[Queue]) -> int:
    return seen.value.messages_ready or 0


def _consumed_siblings(view: View) -> dict[Place, tuple[Sibling, ...]]:
    """Return by queue the consumed queues bound to the same exchange, one per exchange."""
    consumed = {queue.key for queue in view.queues if queue.consumers}
    by_exchange: dict[tuple[str, str], set[str]] = {}
    for binding in view.bindings or ():
        if binding.destination_type == "queue":
            by_exchange.setdefault((binding.vhost, binding.source), set()).add(binding.destination)
    found: dict[Place, list[Sibling]] = {}
    for (vhost, exchange), names in by_exchange.items():
        read = sorted(name for name in names if (vhost, name) in consumed)
        if read:
            for name in names - set(read):
                found.setdefault((vhost, name), []).append(Sibling(exchange, read[0]))
    return {key: tuple(sorted(siblings)) for key, siblings in found.items()}


def _finding(
    view: View, queue: Queue, run: Series[Queue], siblings: tuple[Sibling, ...], severity: Severity
) -> Finding:
    seconds, limit = span(run), view.limits(queue).queues.orphan_for
    published = delta(run, "publish")
    node = queue.leader or queue.node
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(queue),
            "ready": queue.messages_ready or 0,
            "published": published,
            "over_seconds": seconds,
            "siblings": [{"queue": each.queue, "exchange": each.exchange} for each in siblings],
            "warning_after_seconds": limit,
        },
        certainty=certainty(severity, seconds, limit),
        seen_seconds=seconds,
        evidence=(
            Evidence(key="reads", source=source("/api/queues", "message_stats")),
            Evidence(key="consumers", value=0, source=source("/api/queues", "consumers")),
            Evidence(
                key="published",
                value=published,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready or 0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
        ),
        involved=Involved(
            queues=(queue_ref(queue), *(QueueRef(queue.vhost, each.queue) for each in siblings)),
            exchanges=tuple(ExchangeRef(queue.vhost, each.exchange) for each in siblings),
            nodes=(node,) if node else (),
        ),
    )

"""orphan-queue (C10): a queue that grows and that has never been consumed from: a forgotten subscription.

In no-consumer a consumer left; here the broker's counters show no delivery at all. A sibling gives early evidence:
another queue that the same exchange routes to and that is consumed. Where each release of an application declares a
queue of its own, those of earlier releases have a name of the same form and the same bindings as the consumed one. They
are one finding. Shards of one queue have different bindings, or an exchange that gives each message to one of them.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Evidence, ExchangeRef, Finding, Involved, QueueRef, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.memo import per_view
from diagnosis.queue_families import name_pattern
from diagnosis.routes import Place, dead_letter_targets, is_delay
from diagnosis.rules.consumers._shared.arrivals import filling_clients, filling_shovels, passed_on
from diagnosis.rules.consumers._shared.similar_queues import similar_queue
from diagnosis.rules.queues._shared.queue import (
    certainty,
    is_private,
    queue_refs,
    queue_subject,
    queue_with_policy,
)
from diagnosis.series import count, delta, span, stretch, without_consumers
from diagnosis.window import Series, Timestamped

NAME = "orphan-queue"

_COPIES = ("fanout", "direct", "topic")
"""Types of exchanges that copy each message to all queues with the same binding."""

READS = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")
"""Counters that rise when somebody consumes from a queue or polls it."""


@dataclass(frozen=True, slots=True, order=True)
class Sibling:
    """A queue that is consumed from and bound to the same exchange as another one."""

    exchange: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Orphan:
    queue: Queue
    run: Series[Queue]
    siblings: tuple[Sibling, ...]
    severity: Severity


_Release = tuple[str, str, frozenset[tuple[str, str]]]
"""Virtual host, form of the name, and the bindings: exchange and routing key of each."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every durable queue without consumers and without any delivery in the broker's counters."""
    found = list(_orphans(view))
    if not found:
        return
    releases = _current_releases(view)
    groups: dict[_Release | Place | None, list[_Orphan]] = defaultdict(list)
    for orphan in found:
        release = _release(view, orphan.queue)
        groups[release if release in releases else orphan.queue.key].append(orphan)
    for orphans in groups.values():
        yield _finding(
            view,
            sorted(orphans, key=lambda each: each.queue.name),
            current=releases.get(_release(view, orphans[0].queue)),
        )


def _orphans(view: View) -> Iterator[_Orphan]:
    suspects = [queue for queue in view.queues if _never_read(queue) and not is_delay(view, queue)]
    if not suspects:
        return
    targets = dead_letter_targets(view)
    for queue in suspects:
        if queue.key in targets or not (queue.stats.publish or 0):
            continue
        run = stretch(view.history(queue), without_consumers)
        seconds, limits = span(run), view.limits(queue)
        if delta(run, "publish") <= 0 or _ready(run[-1]) <= _ready(run[0]):
            continue
        if similar_queue(view, queue) is not None:
            # Nobody forgot it: see no-consumer.
            continue
        siblings = per_view(view, _consumed_siblings).get(queue.key, ())
        if siblings and seconds >= limits.early:
            severity = Severity.WARNING if seconds >= limits.queues.orphan_for else Severity.INFO
            yield _Orphan(queue=queue, run=run, siblings=siblings, severity=severity)
        elif seconds >= limits.queues.orphan_alone and not _filled_on_purpose(view, queue):
            yield _Orphan(queue=queue, run=run, siblings=(), severity=Severity.WARNING)


def _release(view: View, queue: Queue) -> _Release | None:
    """Return what the queues of all releases of an application share; None if nothing does."""
    pattern, bound = name_pattern(queue.name), per_view(view, _bound).get(queue.key)
    return (queue.vhost, pattern, frozenset(bound)) if bound and "*" in pattern else None


def _current_releases(view: View) -> dict[_Release | None, str]:
    """Return the consumed queue of each release, by what the queues of all releases share."""
    consumed = [queue for queue in view.queues if queue.consumers]
    return {key: queue.name for queue in consumed if (key := _release(view, queue)) is not None}


def _bound(view: View) -> dict[Place, set[tuple[str, str]]]:
    """Return by queue its bindings, of exchanges that copy a message to each queue with a binding that matches."""
    types = {exchange.key: exchange.type for exchange in view.exchanges}
    found: dict[Place, set[tuple[str, str]]] = defaultdict(set)
    for each in view.bindings or ():
        kind = types.get((each.vhost, each.source))
        if each.destination_type == "queue" and kind in _COPIES:
            found[each.vhost, each.destination].add((each.source, "" if kind == "fanout" else each.routing_key))
    return found


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


def _finding(view: View, orphans: list[_Orphan], current: str | None) -> Finding:
    queue, siblings = orphans[0].queue, orphans[0].siblings
    severity = min((each.severity for each in orphans), key=lambda each: each.urgency)
    seconds, limit = max(span(each.run) for each in orphans), view.limits(queue).queues.orphan_for
    published = sum(delta(each.run, "publish") for each in orphans)
    ready = sum(each.queue.messages_ready or 0 for each in orphans)
    queues = [each.queue for each in orphans]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=min(each.run[0].at.iso() for each in orphans),
        facts={
            "queue": queue_with_policy(view, queue),
            "others": [each.name for each in queues[1:]],
            "current": current,
            "ready": ready,
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
            Evidence(key="ready", value=ready, unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")),
        ),
        involved=Involved(
            queues=(*queue_refs(queues), *(QueueRef(queue.vhost, each.queue) for each in siblings)),
            exchanges=tuple(ExchangeRef(queue.vhost, each.exchange) for each in siblings),
            nodes=tuple(sorted({node for each in queues if (node := each.leader or each.node)})),
        ),
    )

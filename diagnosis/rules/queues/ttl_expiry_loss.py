"""ttl-expiry-loss (C04): messages expire before a consumer gets to them; the queue looks empty and healthy.

A delay queue (dead-letter exchange, never consumed) does so by design. A queue that had a consumer is no delay queue,
whatever its settings: since the consumer left, its messages expire unprocessed. One that was never consumed may hold
what is recent on purpose, unless its TTL is next to nothing. Messages that consumers reject do not count as expired,
because the balance excludes delivered messages. The API does not show a message's own `expiration`; without a TTL of
the queue, messages that keep leaving a queue without a consumer can only expire by their own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ackscope.findings import Evidence, ExchangeRef, Finding, Involved, QueueRef, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.purpose import CONSUMED, had_consumer, was_consumed
from diagnosis.routes import Place, dead_letters_to, is_delay
from diagnosis.rules.publishers._shared.overflow import has_length_limit
from diagnosis.rules.queues._shared.message_balance import (
    MessageBalance,
    balance_evidence,
    balance_facts,
    lasts,
    losing_run,
)
from diagnosis.rules.queues._shared.queue import (
    certainty,
    involved_queue,
    is_private,
    queue_subject,
    queue_with_policy,
)
from diagnosis.rules.queues.queue_purged import purges
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "ttl-expiry-loss"

_NO_TIME = 100
"""Milliseconds of a TTL that is no time: such a queue hands a message to a consumer at once, or drops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What expires in one queue.

    Attributes:
        run: readings in which messages kept expiring.
        balance: its balance over the run.
        alone: readings in which no client took anything; empty if it has a consumer.
        worked: whether it has or had a consumer, or was polled.
        targets: queues that receive what expires; empty if it is lost, None if unknown.
    """

    run: Series[Queue]
    balance: MessageBalance
    alone: Series[Queue]
    worked: bool
    targets: frozenset[Place] | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that messages are published to and that may let them expire."""
    for queue in view.queues:
        if queue.type == "stream" or is_private(queue):
            continue
        if not _may_expire(queue) or is_delay(view, queue) or _at_length_limit(view, queue):
            continue
        has_ttl = queue.setting("message-ttl") is not None
        found = losing_run(view, queue) if has_ttl else losing_run(view, queue, meanwhile=_is_unconsumed)
        if found is None or not (has_ttl or _drains_evenly(found[0])):
            continue
        if not (has_ttl and _was_purged(view, queue, found[1])):
            yield _finding(view, queue, _expiry(view, queue, *found))


def _was_purged(view: View, queue: Queue, found: MessageBalance) -> bool:
    """Return whether all that was lost left at once, long before its TTL."""
    purged = purges(view, queue)
    return bool(purged) and found.lost <= sum(balance.vanished for _, balance in purged)


def _may_expire(queue: Queue) -> bool:
    """Return whether only expiry explains what leaves without a client: it has a TTL, or neither consumer nor limit."""
    if isinstance(queue.setting("message-ttl"), int):
        return True
    return queue.consumers == 0 and not has_length_limit(queue)


def _is_unconsumed(queue: Queue) -> bool:
    return queue.consumers == 0


def _drains_evenly(run: Series[Queue]) -> bool:
    """Return whether the queue was never emptied at once, as a purge does."""
    levels = [seen.value.messages_ready or 0 for seen in run]
    return all(newer >= older / 2 for older, newer in pairwise(levels))


def _expiry(view: View, queue: Queue, run: Series[Queue], found: MessageBalance) -> Expiry:
    history = view.history(queue)
    exchange = queue.setting("dead-letter-exchange")
    return Expiry(
        run=run,
        balance=found,
        alone=() if queue.consumers else stretch(history, _unattended),
        worked=was_consumed(queue) or had_consumer(history),
        targets=dead_letters_to(view, queue) if isinstance(exchange, str) else frozenset(),
    )


def _unattended(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether the queue had no consumer and was not polled between two readings."""
    return older.value.consumers == newer.value.consumers == 0 and not delta((older, newer), *CONSUMED)


def _at_length_limit(view: View, queue: Queue) -> bool:
    """Return whether the loss may be due to its length limit instead."""
    length = queue.setting("max-length")
    return isinstance(length, int) and (queue.messages_ready or 0) >= view.limits(queue).queues.full_share * length


def _severity(view: View, queue: Queue, expiry: Expiry) -> Severity:
    limits, seconds = view.limits(queue).queues, lasts(expiry.run, expiry.balance)
    much = expiry.balance.lost >= limits.expiry_much_share * expiry.balance.published
    if queue.consumers:
        soon = much and seconds >= limits.expiry_much_for
        return Severity.WARNING if soon or seconds >= limits.expiry_for else Severity.INFO
    lost = expiry.targets is not None and not expiry.targets
    if not expiry.worked:
        certain = lost and _keeps_nothing(queue) and seconds >= limits.expiry_much_for
        return Severity.WARNING if certain else Severity.INFO
    return Severity.CRITICAL if lost and seconds >= limits.expiry_much_for else Severity.WARNING


def _keeps_nothing(queue: Queue) -> bool:
    """Return whether a message expires before anybody could look at it: what no consumer is ready for is lost."""
    ttl = queue.setting("message-ttl")
    return isinstance(ttl, int) and ttl <= _NO_TIME


def _finding(view: View, queue: Queue, expiry: Expiry) -> Finding:
    limits, seconds = view.limits(queue).queues, lasts(expiry.run, expiry.balance)
    severity = _severity(view, queue, expiry)
    ttl = queue.setting("message-ttl")
    ttl = ttl if isinstance(ttl, int) else None
    exchange = queue.setting("dead-letter-exchange")
    exchange = exchange if isinstance(exchange, str) else None
    much = expiry.balance.lost >= limits.expiry_much_share * expiry.balance.published
    until = limits.expiry_much_for if much else limits.expiry_for
    history = view.history(queue)
    consumer_left = bool(expiry.alone) and len(expiry.alone) < len(history)
    since = expiry.alone[0] if consumer_left else expiry.run[0]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=since.at.iso(),
        facts={
            "queue": queue_with_policy(queue),
            **balance_facts(expiry.balance),
            "ready": queue.messages_ready or 0,
            "consumers": queue.consumers or 0,
            "worked": expiry.worked,
            "keeps_nothing": _keeps_nothing(queue),
            "consumer_left": consumer_left,
            "without_consumer_seconds": span(expiry.alone),
            "consumed_total": count(queue.stats, *CONSUMED),
            "ttl_seconds": None if ttl is None else ttl / 1000,
            "ttl_is_argument": "x-message-ttl" in queue.arguments,
            "longer_ttl_milliseconds": None if ttl is None else ttl * 10,
            "dead_letter_exchange": exchange,
            "targets": None if expiry.targets is None else sorted(name for _, name in expiry.targets),
            "lost_for_good": expiry.targets is not None and not expiry.targets,
            "warning_after_seconds": until,
        },
        accounted=expiry.balance.lost,
        certainty=certainty(severity, seconds, until),
        seen_seconds=seconds,
        evidence=tuple(_evidence(queue, expiry, ttl)),
        involved=_involved(view, queue, exchange, expiry.targets or ()),
    )


def _evidence(queue: Queue, expiry: Expiry, ttl: int | None) -> Iterator[Evidence]:
    yield from balance_evidence(expiry.balance)
    if ttl is not None:
        yield Evidence(
            key="ttl",
            value=ttl / 1000,
            unit=Unit.SECONDS,
            source=source("/api/queues", "arguments", "effective_policy_definition"),
        )
    yield Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready"),
    )
    if not queue.consumers:
        yield Evidence(
            key="consumers",
            value=0,
            source=source("/api/queues", "consumers", "message_stats.deliver", "message_stats.ack"),
        )


def _involved(view: View, queue: Queue, exchange: str | None, targets: Iterable[Place]) -> Involved:
    involved = involved_queue(queue, view.links(queue), [QueueRef(*place) for place in sorted(targets)])
    return replace(involved, exchanges=(ExchangeRef(queue.vhost, exchange),)) if exchange else involved

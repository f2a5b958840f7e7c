"""poison-drop (B07): a quorum queue without a dead-letter exchange deletes messages that reached its delivery limit.

The management API has no counter for it; Prometheus has
`rabbitmq_global_messages_dead_lettered_delivery_limit_total`. What the API has is a balance: published, minus
acknowledged, minus what is still in the queue. The rest was dropped, and the redeliveries show that the delivery limit
is the reason: each dropped message was redelivered as often as the limit says.
Source: https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import consumer_facts
from diagnosis.hold_time import may_hold
from diagnosis.ledger import SKEW_SECONDS, from_its_beginning, ledger, may_have_lost
from diagnosis.purpose import CONSUMED
from diagnosis.rules.consumers._shared.by_totals import DELETED_BY, RETURNED_BY, Deleted, deleted, sole_history
from diagnosis.rules.consumers._shared.comings import LASTING, comings, recent_clients, returning_facts, returning_loop
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.redelivery_rounds import only_polled
from diagnosis.rules.consumers._shared.sessions import unreported
from diagnosis.rules.consumers._shared.unattributed_consumers import unattributed
from diagnosis.rules.publishers._shared.native_balance import BALANCED, arrivals_unknown, balance, with_returns
from diagnosis.rules.queues._shared.queue import queue_with_policy
from diagnosis.series import count, delta, last, span
from diagnosis.unattributed import names, suspect_evidence, suspect_facts, with_suspects
from diagnosis.window import Series

NAME = "poison-drop"

OTHER_EXITS = ("message-ttl", "max-length", "max-length-bytes")
"""Settings by which messages leave a queue in another way."""

_RETURNS = 0.4
"""Share of the returns up to the limit that must be seen; with fewer, messages were rejected, some after a retry."""
_ALL_RETURNS = 0.9
"""Share of the returns up to the limit that must be seen where returned messages may leave in another way, too."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue with a delivery limit, redeliveries and no dead-letter exchange."""

    def drops(queue: Queue) -> bool:
        limited = delivery_limit(queue, view.version) is not None
        return limited and queue.setting("dead-letter-exchange") is None

    gone = deleted(
        view, "quorum", "over_limit", (each for each in view.queues if drops(each) and unattributed(view, each))
    )
    known = gone is not None and (gone.least < view.thresholds.queues.loss_least or len(gone.queues) == 1)
    yield from unreported(view, NAME, lambda queue: drops(queue) and not known)
    yield from arrivals_unknown(view, NAME, drops)
    if gone is not None and known and gone.queues and gone.least >= view.limits(gone.queues[0]).queues.loss_least:
        yield from _counted(view, gone)
    yield from _of_amqp10(view)
    for queue in view.queues:
        if queue.type != "quorum" or queue.messages is None or not count(queue.stats, "deliver", "get"):
            continue
        limit = delivery_limit(queue, view.version)
        if limit is None or queue.setting("dead-letter-exchange") is not None or not may_have_lost(view, queue):
            continue
        history = tuple(seen for seen in from_its_beginning(view, queue) if seen.value.messages is not None)
        shared = any(queue.setting(name) is not None for name in OTHER_EXITS)
        dropped = _discarded(view, queue, history)
        if not shared:
            dropped = max(dropped, _dropped(history, view.limits(queue).consumers.poison_seen))
        dropped = at_limit(dropped, delta(history, "redeliver"), limit, _ALL_RETURNS if shared else _RETURNS)
        if dropped > 0:
            yield _finding(view, queue, history, dropped, limit)


def _counted(view: View, gone: Deleted) -> Iterator[Finding]:
    """Report what the only queue that can have deleted them dropped, by the total of all quorum queues."""
    (queue,) = gone.queues
    limit, history = delivery_limit(queue, view.version), sole_history(view, queue)
    if limit is not None:
        history = history or view.history(queue)
        yield _finding(view, queue, history, gone.least, limit, counted=gone)


def _of_amqp10(view: View) -> Iterator[Finding]:
    """Judge the queues of AMQP 1.0 consumers by their balance: what left was returned as often as the limit says.

    Messages that are accepted leave without so many returns, and so do those that expire or are dropped. In a loop far
    fewer leave, or none; then the time at which the length is refreshed may look like a few.
    """
    for queue in view.uncounted_queues:
        if not any(link.session for link in view.links(queue)) or queue.stats.redeliver:
            continue
        limit = delivery_limit(queue, view.version)
        if not limit or queue.setting("dead-letter-exchange") is not None or queue.messages is None:
            continue
        history = with_returns(balance(view, queue))
        if span(history) < view.limits(queue).early:
            continue
        arrived, returned = delta(history, "publish"), delta(history, "redeliver")
        left = arrived - (history[-1].value.messages or 0) + (history[0].value.messages or 0)
        late = 2 * SKEW_SECONDS * arrived / span(history)
        if left - late >= view.limits(queue).queues.loss_least and returned >= _ALL_RETURNS * limit * left:
            yield _finding(view, queue, history, left, limit)


def at_limit(missing: int, redelivered: int, limit: int, share: float = _RETURNS) -> int:
    """Return how many of the missing messages a delivery limit deleted; consumers rejected the others.

    A message that the limit deletes was delivered once, and redelivered as often as the limit says. A few redeliveries
    prove nothing: messages may be rejected after a retry.

    Args:
        missing: messages that were deleted after a delivery.
        redelivered: redeliveries in the same time.
        limit: the delivery limit.
        share: share of all these redeliveries that must be seen.
    """
    if limit == 0 or redelivered >= _ALL_RETURNS * missing * limit:
        return missing
    return redelivered // limit if redelivered >= share * missing * limit else 0


def delivery_limit(queue: Queue, version: tuple[int, int] | None) -> int | None:
    """Return how often a message may be redelivered; None without a limit, which is the default before 4.0.

    From 4.0 on a negative limit is none. Before, every first return exceeds it, as with 0; seen on 3.10.8.
    """
    limit = queue.delivery_limit if queue.delivery_limit is not None else queue.setting("delivery-limit")
    if queue.type != "quorum" or not isinstance(limit, int):
        return None
    if limit < 0:
        return 0 if version is not None and version < (4, 0) else None
    return limit


def _missing(queue: Queue) -> int:
    """Return the messages that were published, but neither acknowledged nor still in the queue."""
    acked = count(queue.stats, *CONSUMED)
    return count(queue.stats, "publish") - acked - (queue.messages or 0)


def _dropped(history: Series[Queue], seconds: float) -> int:
    """Return the minimum of messages that went missing; counters and lengths differ in time, so a few are noise."""
    recent = last(history, seconds)
    if len(recent) == len(history) or span(recent) < seconds:
        recent = history[len(history) // 2 :]
    if len(history) < 3:
        recent = history[-1:]
    before = max(_missing(seen.value) for seen in history[:1])
    dropped = min(_missing(seen.value) for seen in recent) - before if recent else 0
    return dropped if dropped > delta(last(history, seconds / 3), "publish") else 0


def _discarded(view: View, queue: Queue, history: Series[Queue]) -> int:
    """Return the messages that left after a delivery, without those that expired or were dropped before one."""
    found = ledger(history, may_hold(view, queue))
    if found is None or found.proven_discarded < view.limits(queue).queues.loss_least:
        return 0
    return found.discarded


def _finding(
    view: View, queue: Queue, history: Series[Queue], dropped: int, limit: int, counted: Deleted | None = None
) -> Finding:
    redelivered, links = delta(history, "redeliver"), view.links(queue)
    counters = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
    redelivers = source("/api/queues", "message_stats.redeliver")
    if any(link.session for link in links):
        counters = redelivers = BALANCED
    unlisted = unattributed(view, queue) if counted is not None else None
    suspects = unlisted.suspects if unlisted is not None else ()
    if counted is not None:
        counters, redelivers = DELETED_BY["over_limit"], RETURNED_BY
    loop = None if suspects else returning_loop(view, queue)
    named = client_names(links) or recent_clients(view, queue) or ([loop.client] if loop is not None else [])
    clients = names(suspects) if suspects else named
    involved = involved_consumers((queue,), links)
    if loop is not None:
        involved = replace(involved, connections=(loop.connection.name,), clients=(loop.client,))
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=queue_subject(queue),
        since=history[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "dropped": dropped,
            "redelivered": redelivered,
            "delivery_limit": limit,
            "limit_set": queue.setting("delivery-limit"),
            "clients": clients,
            "disconnects": loop is not None or comings(history) >= LASTING,
            "channel_loop": returning_facts(loop),
            "polled": not links and only_polled(history),
            "suspects": suspect_facts(suspects),
        },
        evidence=(
            Evidence(
                key="dropped",
                value=dropped,
                unit=Unit.MESSAGES,
                source=counters,
            ),
            Evidence(
                key="redelivered",
                value=redelivered,
                unit=Unit.MESSAGES,
                source=redelivers,
            ),
            Evidence(
                key="delivery_limit",
                value=limit,
                source=source("/api/queues", "delivery_limit", "arguments", "effective_policy_definition"),
            ),
            Evidence(
                key="dead_letter_exchange",
                value="none",
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            *(
                Evidence(key="consumer", source=source("/api/consumers"), facts={"consumed_by": consumer_facts(link)})
                for link in (() if suspects else links[:3])
            ),
            *suspect_evidence(suspects),
        ),
        involved=with_suspects(involved, suspects),
        seen_seconds=span(history),
    )

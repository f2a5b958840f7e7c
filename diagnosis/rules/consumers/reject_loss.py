"""reject-loss: consumers reject messages without requeue, and no dead-letter exchange keeps them.

The broker deletes such a message at once. No counter shows it: the message was delivered, and is neither acknowledged
nor unacknowledged nor in the queue. The ledger of the queue counts exactly that. What was returned after its TTL leaves
in the same way; `ttl-expiry-loss` reports it. Channels that are still open show what is lost too slowly for
the readings (`diagnosis.rules.consumers._shared.open_channels`).
Source: https://www.rabbitmq.com/docs/dlx; https://www.rabbitmq.com/docs/nack
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Fact, Finding, Inconclusive, Severity, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_names
from diagnosis.ledger import Ledger, ledger, losing
from diagnosis.rules.consumers._shared.by_totals import DELETED_BY, Deleted, deleted, sole_history
from diagnosis.rules.consumers._shared.discarded import Discarded, discarded
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.open_channels import (
    RejectedSinceOpened,
    RejectingConsumer,
    rejected_since_opened,
)
from diagnosis.rules.consumers._shared.sessions import session_evidence, settled_during, settles_uncounted
from diagnosis.rules.consumers._shared.unattributed_consumers import unattributed
from diagnosis.rules.queues._shared.queue import queue_with_policy
from diagnosis.rules.topology._shared.policies import shadowed_dead_lettering
from diagnosis.series import delta, last, span
from diagnosis.unattributed import counted, gained, names, of_type, suspect_evidence, suspect_facts, with_suspects
from diagnosis.window import Series

NAME = "reject-loss"

_OF_MOST = 0.2
"""Share of the rejects of the consumer with most of them, below which another one is not named."""
_ONGOING = 30.0
"""Seconds of readings of the totals in which none was rejected, after which the loss has stopped."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue without a dead-letter exchange whose deliveries are more than its settled messages."""
    seen = discarded(view)
    for kind, queues in sorted(_uncounted(view).items()):
        yield from _by_total(view, kind, queues)
    for each in seen:
        if each.ttl is None or each.returned is None:
            yield _finding(view, each)
    known = {each.queue.key for each in seen}
    yield from (_since_opened(view, it) for it in rejected_since_opened(view) if it.queue.key not in known)


def _uncounted(view: View) -> dict[str, list[Queue]]:
    """Return, by type, the queues whose AMQP 1.0 consumers settle messages with outcomes that no queue counts."""
    found: dict[str, list[Queue]] = defaultdict(list)
    for queue in view.uncounted_queues:
        if queue.type == "stream" or queue.setting("dead-letter-exchange") is not None:
            continue
        if any(settles_uncounted(view, link) for link in view.links(queue)):
            found[queue.type or ""].append(queue)
    return found


def _by_total(view: View, kind: str, queues: list[Queue]) -> Iterator[RuleResult]:
    """Judge queues by how many rejected messages all queues of their type deleted, which names no queue."""
    gone, totals_read = deleted(view, kind, "rejected", queues), bool(counted(view))
    if gone is None or (gone.least >= view.thresholds.queues.loss_least and len(queues) > 1):
        facts: dict[str, Fact] = {
            "queues": len(queues),
            "names": queue_names(queues),
            "rejected": None if gone is None else gone.least,
            "over_seconds": None if gone is None else gone.seconds,
            "totals_read": totals_read,
        }
        yield Inconclusive(
            rule=NAME, reason="outcomes_not_reported", facts=facts, permanent=gone is None and totals_read
        )
    elif gone.least >= view.limits(queues[0]).queues.loss_least:
        yield _of_total(view, queues[0], gone)


def _of_total(view: View, queue: Queue, gone: Deleted) -> Finding:
    """Return the finding about the only queue that can have deleted them."""
    links, suspects = _clients(view, queue, gone)
    # Other queues of its type with such consumers count as well.
    series = gone.series if sole_history(view, queue) else ()
    delivered, again, acked = (
        gained(series, of_type(queue.type, name)) or 0 for name in ("delivered", "redelivered", "accepted")
    )
    delivered -= again
    share = min(1.0, gone.least / max(delivered, gone.least, 1))
    limits = view.limits(queue).consumers
    ongoing = gained(last(gone.series, _ONGOING), of_type(queue.type, "rejected"))
    severity = Severity.CRITICAL if ongoing and share >= limits.reject_share else Severity.WARNING
    return Finding(
        rule=NAME,
        severity=Severity.INFO if share < limits.reject_share / 10 else severity,
        subject=queue_subject(queue),
        since=gone.series[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "shadowed": shadowed_dead_lettering(view, queue),
            "lost": gone.least,
            "error": 0,
            "delivered": max(delivered, gone.least),
            "acked": acked,
            "share": share,
            "over_seconds": gone.seconds,
            "lost_rate": gone.least / gone.seconds if gone.seconds else None,
            "clients": names(suspects) if suspects else client_names(links),
            "by_get": False,
            "requeues": again > 0,
            "perhaps_expired": False,
            "since_opened": False,
            "amqp10": True,
            "suspects": suspect_facts(suspects),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=gone.seconds,
        evidence=(
            Evidence(key="rejected", value=gone.least, unit=Unit.MESSAGES, source=DELETED_BY["rejected"]),
            Evidence(
                key="dead_letter_exchange",
                value="none",
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            *(session_evidence(link) for link in links[:3] if link.session),
            *suspect_evidence(suspects),
        ),
        involved=with_suspects(involved_consumers((queue,), links), suspects),
    )


def _clients(view: View, queue: Queue, gone: Deleted) -> tuple[tuple[ConsumerPath, ...], tuple[Connection, ...]]:
    """Return the consumers that rejected, or connections of which one or more did.

    Which outcome a session chose is not counted. But it rejected no more than it settled, and what all others together
    cannot have rejected is its own.
    """
    found = unattributed(view, queue)
    if found is not None:
        return found.links, found.suspects
    links = [link for link in view.links(queue) if settles_uncounted(view, link)]
    most = dict[str, int]()
    for session in {link.session.key: link.session for link in links if link.session}.values():
        settled = settled_during(view, session, gone.series[0].at, gone.series[-1].at)
        most[session.connection_name] = most.get(session.connection_name, 0) + (
            gone.least if settled is None else settled
        )
    able = sorted(name for name, number in most.items() if number)
    certain = [name for name in able if gone.least > sum(most.values()) - most[name]]
    if len(able) > 1 and not certain:
        return (), tuple(each for name in able if (each := view.connection(name)) is not None)
    return tuple(link for link in links if link.session and link.session.connection_name in (certain or able)), ()


def _rejecters(view: View, queue: Queue) -> list[RejectingConsumer]:
    """Return the consumers that rejected, by the counters of their own channels; most first."""
    found = []
    for link in view.links(queue):
        if link.channel is None or view.queues_served(link.channel.name) != 1:
            continue
        history = view.channel_history(link.channel.name)
        unacked = (history[-1].value.messages_unacked or 0) - (history[0].value.messages_unacked or 0) if history else 0
        settled = delta(history, "deliver") - delta(history, "redeliver") - unacked
        rejected = settled - delta(history, "ack")
        if rejected > 0:
            found.append(RejectingConsumer(link, rejected))
    # Counters of a channel are refreshed apart, so one that acknowledges may look as if it rejected a few.
    most = max((each.rejected for each in found), default=0)
    return sorted((each for each in found if each.rejected >= _OF_MOST * most), key=lambda each: -each.rejected)


def _severity(view: View, queue: Queue, history: Series[Queue], found: Ledger, lost: int) -> Severity:
    limits = view.limits(queue)
    share = lost / max(found.delivered, 1)
    recent = ledger(last(history, 3 * limits.interval))
    if share < limits.consumers.reject_share / 10:
        return Severity.INFO
    ongoing = recent is not None and recent.discarded > 0
    return Severity.CRITICAL if ongoing and share >= limits.consumers.reject_share else Severity.WARNING


def _finding(view: View, each: Discarded) -> Finding:
    queue, history, found, lost = each.queue, each.history, each.found, each.lost
    rejecters = _rejecters(view, queue)
    links = tuple(it.link for it in rejecters) or view.links(queue)
    run = losing(history, lambda it: it.discarded, lost)
    seconds = span(run)
    return Finding(
        rule=NAME,
        severity=_severity(view, queue, history, found, lost),
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "shadowed": shadowed_dead_lettering(view, queue),
            "lost": lost,
            "error": found.discarded_error,
            "delivered": found.delivered,
            "acked": found.acked,
            "share": min(1.0, lost / max(found.delivered, 1)),
            "over_seconds": seconds,
            "lost_rate": lost / seconds if seconds else None,
            "clients": client_names(it.link for it in rejecters),
            "by_get": bool(delta(history, "get")) and not rejecters,
            "requeues": found.redelivered > 0,
            "perhaps_expired": each.returned is not None,
            "since_opened": False,
            "amqp10": False,
            "suspects": [],
        },
        certainty=Certainty.CERTAIN if found.redelivered == 0 and each.returned is None else Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=_evidence(found.delivered, found.acked, lost, found.discarded_error, rejecters),
        involved=involved_consumers((queue,), links),
    )


def _since_opened(view: View, found: RejectedSinceOpened) -> Finding:
    """Return the finding about messages that were rejected since the channels were opened."""
    queue, links = found.queue, tuple(it.link for it in found.rejecters)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if found.lasts else Severity.INFO,
        subject=queue_subject(queue),
        facts={
            "queue": queue_with_policy(view, queue),
            "shadowed": shadowed_dead_lettering(view, queue),
            "lost": found.lost,
            "error": found.error,
            "delivered": found.delivered,
            "acked": found.acked,
            "share": found.share,
            "over_seconds": found.seconds,
            "lost_rate": found.lost / found.seconds,
            "clients": client_names(links),
            "by_get": False,
            "requeues": found.redelivered > 0,
            "perhaps_expired": found.perhaps_expired,
            "since_opened": True,
            "amqp10": False,
            "suspects": [],
        },
        certainty=Certainty.LIKELY,
        evidence=_evidence(found.delivered, found.acked, found.lost, found.error, found.rejecters),
        involved=involved_consumers((queue,), links),
    )


def _evidence(
    delivered: int, acked: int, lost: int, error: int, rejecters: Sequence[RejectingConsumer]
) -> tuple[Evidence, ...]:
    counters = source("/api/queues", "message_stats.deliver", "message_stats.get", "message_stats.redeliver")
    lengths = source("/api/queues", "messages_unacknowledged", "messages_ready")
    settings = source("/api/queues", "arguments", "effective_policy_definition")
    return (
        Evidence(key="delivered", value=delivered, unit=Unit.MESSAGES, source=counters),
        Evidence(key="acked", value=acked, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")),
        Evidence(key="lost", value=lost, unit=Unit.MESSAGES, source=counters + lengths, facts={"error": error}),
        Evidence(key="dead_letter_exchange", value="none", source=settings),
        *(
            Evidence(
                key="consumer",
                value=it.rejected,
                unit=Unit.MESSAGES,
                source=source("/api/consumers") + source("/api/channels", "message_stats.deliver"),
                facts={"consumed_by": consumer_facts(it.link)},
            )
            for it in rejecters[:3]
        ),
    )

"""The finding about messages that were lost while the queue for them was away."""

from collections.abc import Iterable
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, ExchangeRef, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.consumers._shared.comings import recent_clients
from diagnosis.rules.publishers._shared.away_queues import AwayLoss
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED, Routing
from diagnosis.rules.publishers._shared.publishers import involved_publishers
from diagnosis.rules.publishers._shared.unroutable_facts import (
    NOT_EXAMINED,
    SUBSCRIPTION_TYPES,
    exchange_subject,
    publisher_evidence,
    publisher_facts,
)
from diagnosis.rules.queues._shared.queue import queue_refs


def away_finding(view: View, rule: str, counter: str, loss: AwayLoss) -> Finding:
    """Return the finding: information for one absence (a deployment has one), a warning for more of them.

    Subscribers of events may come and go with a queue that is made not to last; not one that comes back at once, again
    and again, and misses a share that matters. A queue that is made to last and was deleted by a client or person is a
    warning at once: what was dropped meanwhile is lost.
    """
    exchange, queues = loss.exchange, loss.queues
    needed = loss.comes_back and loss.lost >= view.thresholds.publishers.unroutable_share * loss.received
    optional = exchange.type in SUBSCRIPTION_TYPES and not needed and not any(each.durable for each in queues)
    rate = loss.lost / max(loss.seconds, 1.0)
    warns = loss.repeated and not optional and rate > view.thresholds.publishers.unroutable_rate
    reason = _reason(queues[0])
    for_good = counter == DROPPED and reason == "deleted" and loss.of_lasting
    warns = warns or (for_good and loss.lost >= view.thresholds.queues.loss_least)
    return Finding(
        rule=rule,
        severity=Severity.WARNING if warns else Severity.INFO,
        subject=exchange_subject(exchange),
        since=loss.since.iso(),
        facts={
            **NOT_EXAMINED,
            **publisher_facts(loss.publishers),
            "clients_unknown": view.counts_losses,
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "exchange_unknown": None,
            "away": [each.name for each in queues],
            "away_reason": reason,
            "away_from": loss.since.iso(),
            "away_until": None if loss.until is None else loss.until.iso(),
            "away_for_good": for_good,
            "away_needed": needed,
            "away_times": loss.times,
            "away_back": loss.until is not None,
            "away_clients": _clients(view, queues),
            "expires_seconds": expires / 1000 if isinstance(expires := queues[0].setting("expires"), int) else None,
            "bindings": None,
            "lost": loss.lost,
            "received": loss.received,
            "lost_rate": rate,
            "routing": Routing.PARTLY.value,
            "routed_before": True,
            "subscription_optional": optional,
            "amqp10": False,
            "suspects": list[Fact](),
        },
        evidence=(
            Evidence(
                key="lost_away",
                value=loss.lost,
                unit=Unit.MESSAGES,
                source=source("/api/exchanges", "message_stats.publish_in", "message_stats.publish_out"),
            ),
            Evidence(key="absences", value=loss.times, source=source("/api/queues", "name", "message_stats")),
            *publisher_evidence(counter, [each for each in loss.publishers if each.published]),
        ),
        involved=replace(
            involved_publishers(loss.publishers),
            exchanges=(ExchangeRef(exchange.vhost, exchange.name),),
            queues=queue_refs(queues),
        ),
        certainty=Certainty.LIKELY,
        seen_seconds=loss.seconds,
    )


def _clients(view: View, queues: Iterable[Queue]) -> list[Fact]:
    """Return the applications that consume from the queues; one whose connection was not read has no name."""
    found = {name for each in queues for name in recent_clients(view, each)}
    return [*sorted({name for name in found if " -> " not in name} or found)]


def _reason(queue: Queue) -> str:
    """Return what deletes such a queue: `exclusive`, `auto_delete`, `expires` or `deleted` (by a client or person)."""
    if queue.exclusive is True:
        return "exclusive"
    if queue.auto_delete is True:
        return "auto_delete"
    return "expires" if queue.setting("expires") is not None else "deleted"

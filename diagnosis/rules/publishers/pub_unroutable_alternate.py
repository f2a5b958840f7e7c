"""pub-unroutable-alternate (A16): an exchange cannot route messages, and nobody consumes them behind its alternate one.

An alternate exchange saves what no binding matches, so nothing is lost, and no counter shows it. A queue that is bound
only to alternate exchanges to which nobody publishes contains nothing else. If it is consumed, that route is intended.
If it is full, it drops the oldest of them, and they are lost after all.
Source: https://www.rabbitmq.com/docs/ae
"""

from collections import defaultdict
from collections.abc import Iterator

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Finding,
    Impact,
    Inconclusive,
    Involved,
    QueueRef,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from ackscope.topology import Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.routes import Place, targets
from diagnosis.rules.publishers._shared.lossy_exchanges import alternate_of
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.rules.queues.maxlen_drop_head import dropping
from diagnosis.series import count, delta, last, span, stretch

NAME = "pub-unroutable-alternate"

_CONSUMPTION = ("deliver", "deliver_no_ack", "get", "get_no_ack")


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that only alternate exchanges feed."""
    if view.overview is not None and view.overview.statistics is False and not view.counts_losses:
        yield Inconclusive(rule=NAME, reason="no_counters")
        return
    for place, (alternate, exchanges) in alternate_places(view).items():
        queue = view.queue(*place)
        if queue is not None and queue.messages_ready and not _is_consumed(queue):
            yield from _judge(view, queue, alternate, exchanges)


def alternate_places(view: View) -> dict[Place, tuple[str, list[Exchange]]]:
    """Return the queues that only alternate exchanges feed, with such an exchange and those that it serves."""
    return per_view(view, _places)


def _places(view: View) -> dict[Place, tuple[str, list[Exchange]]]:
    served: dict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for exchange in view.exchanges if view.bindings is not None else ():
        alternate = alternate_of(view, exchange)
        if alternate is not None and exchange.stats.publish_in:
            served[(exchange.vhost, alternate)].append(exchange)
    # What clients publish to the alternate exchange itself is meant for its queues.
    silent = {each.key for each in view.exchanges if each.key in served and not each.stats.publish_in}
    sources: dict[Place, set[str]] = defaultdict(set)
    for binding in (view.bindings or ()) if silent else ():
        if binding.destination_type == "queue":
            sources[(binding.vhost, binding.destination)].add(binding.source)
    return {
        place: (name, served[(vhost, name)])
        for vhost, name in sorted(silent)
        for place in sorted(targets(view, vhost, name, None) or ())
        if all((vhost, each) in silent for each in sources[place])
    }


def _is_consumed(queue: Queue) -> bool:
    return bool(queue.consumers) or count(queue.stats, *_CONSUMPTION) > 0 or queue.type == "stream"


def _judge(view: View, queue: Queue, alternate: str, exchanges: list[Exchange]) -> Iterator[Finding]:
    limits = view.thresholds.publishers
    history = stretch(view.history(queue), lambda _, newer: not newer.value.consumers)
    recent = last(history, view.thresholds.interval)
    arrived, seconds = delta(recent, "publish"), span(recent)
    if arrived <= 0 or span(history) < view.thresholds.early or arrived <= limits.unroutable_rate * seconds:
        return
    late = span(history) >= limits.unroutable_after
    dropped = next((each.found.lost for each in dropping(view) if each.queue.key == queue.key), 0)
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=history[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "alternate": alternate,
            "exchanges": sorted(each.name for each in exchanges)[:MAX_NAMED],
            "stored": delta(history, "publish"),
            "stored_rate": arrived / max(seconds, 1.0),
            "ready": queue.messages_ready or 0,
            "dropped": dropped,
            "warning_after_seconds": limits.unroutable_after,
        },
        own_impact=Impact.LOSS if dropped else None,
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=span(history),
        evidence=(
            Evidence(
                key="stored",
                value=delta(history, "publish"),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish") + source("/api/bindings"),
            ),
            Evidence(
                key="ready",
                value=queue.messages_ready,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
        ),
        involved=Involved(
            queues=(QueueRef(queue.vhost, queue.name),),
            exchanges=tuple(ExchangeRef(each.vhost, each.name) for each in exchanges[:MAX_NAMED]),
        ),
    )

"""sac-none-active: a queue with a single active consumer has consumers, and none of them is active.

The broker delivers nothing to them. Seen on 4.3.6: the acknowledgement timeout takes the messages back from each
consumer in turn, and leaves all of them waiting. What their channels then still count as unacknowledged is stale.
Source: https://www.rabbitmq.com/docs/consumers#single-active-consumer
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Severity, Unit, source
from ackscope.snapshot import Consumer, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_facts, queue_names
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "sac-none-active"

_WAITING = "waiting"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue whose consumers all wait."""
    unclear = [queue for queue in view.queues if view.lists_no_clients and _delivers_nothing(view, queue)]
    if unclear:
        yield Inconclusive(rule=NAME, reason="active_unknown", facts={"queues": queue_names(unclear)})
    for queue in view.queues:
        links = view.links(queue)
        if not links or queue.type == "stream" or not all(_waits(link.consumer, queue) for link in links):
            continue
        waiting = _waiting(view, queue)
        limits = view.limits(queue)
        seconds = span(waiting)
        if (
            seconds < min(limits.early, limits.consumers.none_active_for)
            or held(queue)
            or _delivered(view, queue, waiting[0].at.mono)
        ):
            continue
        yield _finding(view, queue, links, waiting)


def _waits(consumer: Consumer, queue: Queue) -> bool:
    single = bool(queue.arguments.get("x-single-active-consumer")) or consumer.activity_status == _WAITING
    return consumer.active is False and single


def _delivers_nothing(view: View, queue: Queue) -> bool:
    """Return whether messages are ready, the consumers hold none, and none is delivered, for long enough."""

    def _stands(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        pair = (older, newer)
        waits = all(seen.value.messages_ready and seen.value.consumers and not held(seen.value) for seen in pair)
        return bool(waits) and delta(pair, "deliver", "deliver_no_ack", "ack") == 0

    return queue.type != "stream" and span(stretch(view.history(queue), _stands)) >= view.limits(queue).early


def _waiting(view: View, queue: Queue) -> Series[tuple[Consumer, ...]]:
    """Return the latest readings of consumers in which the queue had some, and none was active."""

    def _none_active(consumers: tuple[Consumer, ...]) -> bool:
        own = [each for each in consumers if (each.vhost, each.queue) == queue.key]
        return bool(own) and all(each.active is False for each in own)

    return stretch(view.window.readings("consumers"), lambda older, _newer: _none_active(older.value))


def _delivered(view: View, queue: Queue, since: float) -> int:
    """Return the messages delivered or acknowledged since then, apart from the first refresh of the statistics."""
    refreshed = since + view.thresholds.interval / 2
    recent = tuple(seen for seen in view.history(queue) if seen.at.mono >= refreshed)
    return delta(recent, "deliver", "ack")


def _finding(
    view: View, queue: Queue, links: tuple[ConsumerPath, ...], waiting: Series[tuple[Consumer, ...]]
) -> Finding:
    history = view.history(queue)
    late = span(waiting) >= view.limits(queue).consumers.none_active_for
    ready, published = queue.messages_ready or 0, delta(history, "publish")
    stale = sum({link.channel.name: held(link.channel) for link in links if link.channel}.values())
    stopped = bool(ready) and late
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if stopped else Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=waiting[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "consumers": len(links),
            "clients": client_names(links),
            "ready": ready,
            "published": published,
            "published_seconds": span(history),
            "stale_unacked": stale,
            "had_timeout": any(link.consumer.consumer_timeout_ms for link in links),
            "first_consumer": process_facts(links[0]),
            "waiting_seconds": span(waiting),
            "warning_after_seconds": view.limits(queue).consumers.none_active_for,
        },
        evidence=(
            Evidence(key="active", value=0, source=source("/api/consumers", "active", "activity_status")),
            Evidence(key="ready", value=ready, unit=Unit.MESSAGES, source=source("/api/queues", "messages_ready")),
            Evidence(
                key="unacked",
                value=held(queue),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged")
                + source("/api/channels", "messages_unacknowledged"),
            ),
            *(
                Evidence(
                    key="consumer",
                    value=link.consumer.activity_status or _WAITING,
                    source=source("/api/consumers", "activity_status"),
                    facts={"held_by": consumer_facts(link)},
                )
                for link in links[:5]
            ),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.CERTAIN if late else Certainty.EARLY,
        seen_seconds=span(waiting),
    )

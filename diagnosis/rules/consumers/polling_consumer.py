"""polling-consumer (B12): a client polls an empty queue again and again (basic.get) instead of consuming.

Each poll costs the broker as much as a message. Source: https://www.rabbitmq.com/docs/consumers#polling
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.purpose import POLLED
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.series import delta, last, span, steps
from diagnosis.window import Series

NAME = "polling-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that was polled while it was empty."""
    for queue in view.queues:
        if not queue.stats.get_empty or not view.moved(queue, "get_empty"):
            continue
        limits = view.limits(queue)
        recent = last(view.history(queue), limits.early)
        rates = [
            delta((older, newer), "get_empty") / newer.at.since(older.at)
            for older, newer in steps(recent, limits.interval)
        ]
        if rates and span(recent) >= limits.early and min(rates) > limits.consumers.polling_rate:
            yield _finding(view, queue, recent)


def _polling_channels(view: View) -> list[Channel]:
    """Return the channels that recently polled an empty queue, most polls first; the API does not name the queue."""
    found = [
        (delta(view.channel_history(channel.name), "get_empty"), channel)
        for channel in view.channels
        if channel.stats.get_empty
    ]
    return [channel for polls, channel in sorted(found, key=lambda item: (-item[0], item[1].name)) if polls]


def _finding(view: View, queue: Queue, recent: Series[Queue]) -> Finding:
    seconds = span(recent)
    empty, received = delta(recent, "get_empty"), delta(recent, *POLLED)
    channels = _polling_channels(view)
    connections = {each.connection_name: view.connection(each.connection_name) for each in channels}
    names = [client_name(connection, name) for name, connection in connections.items()]
    clients = list(dict.fromkeys(name for name in names if name))
    evidence = [
        Evidence(
            key="empty_polls",
            value=empty / seconds,
            unit=Unit.PER_SECOND,
            source=source("/api/queues", "message_stats.get_empty"),
        ),
        Evidence(
            key="polls_with_message",
            value=received,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.get", "message_stats.get_no_ack"),
        ),
        Evidence(key="consumers", value=queue.consumers, source=source("/api/queues", "consumers")),
    ]
    if clients:
        evidence.append(
            Evidence(key="clients", value=len(clients), source=source("/api/channels", "message_stats.get_empty"))
        )
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=queue_subject(queue),
        since=recent[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": clients,
            "empty_polls": empty,
            "empty_poll_rate": empty / seconds,
            "received": received,
            "consumers": queue.consumers,
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=(queue_ref(queue),),
            channels=tuple(each.name for each in channels),
            connections=tuple(name for name in connections if name),
            clients=tuple(
                dict.fromkeys(each.client_name for each in connections.values() if each and each.client_name)
            ),
        ),
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
    )

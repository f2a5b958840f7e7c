"""bad-ack-loop (B15): the broker closes a consumer's channel over an acknowledgement, again and again.

406 PRECONDITION_FAILED, unknown delivery tag: the consumer acknowledges a message twice, on another channel than the
one that delivered it, or with the tag of a channel that is closed. Its unacknowledged messages are redelivered each
time. The broker does not count such errors. What it shows is a connection that stays open, channels on it that open
and close, and redeliveries in every cycle.
Source: https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Evidence, Finding, Involved, source
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_ref
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.channel_loops import (
    MIN_PER_CYCLE,
    error_evidence,
    loop_certainty,
    loop_evidence,
    loop_facts,
    loop_severity,
)
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.objects import connection_subject
from diagnosis.series import delta

NAME = "bad-ack-loop"

_ERROR_TEXTS = tuple(f"PRECONDITION_FAILED - unknown delivery tag {'9' * digits}" for digits in range(1, 8))

_MIN_PACKETS = 3.5
"""Minimum packets per cycle: the broker sends channel.open-ok, basic.consume-ok, a delivery and channel.close."""
_MIN_RECEIVED = 50
"""Minimum bytes from the client per cycle: channel.open, close-ok and the refused request (55 and more were seen)."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Report every application whose channels open and close on a connection that stays open."""
    for loop in per_view(view, _bad_ack_loops):
        yield _finding(view, loop)


def _bad_ack_loops(view: View) -> tuple[ChurnLoop, ...]:
    loops = [each for each in churn_loops(view) if _is_bad_ack(each) and _may_redeliver(view, each)]
    fastest = max((each.rate for each in loops), default=0.0)
    # A connection with a little other traffic looks like a slow loop next to the real one.
    return tuple(each for each in loops if each.rate >= MIN_PER_CYCLE * fastest)


def bad_ack_connections(view: View) -> frozenset[str]:
    """Names of the connections that this rule reports."""
    return frozenset(each.connection.name for each in per_view(view, _bad_ack_loops))


def _is_bad_ack(loop: ChurnLoop) -> bool:
    if _received_nothing(loop):
        # The redeliveries belong to another client, such as one in a requeue loop (seen on 4.3.6).
        return False
    # Messages of one cycle are redelivered in the next. The length of the error text alone is not unique.
    redelivers = min(loop.delivered, loop.redelivered) >= MIN_PER_CYCLE
    return not loop.whole and loop.by_broker is not False and redelivers


def _may_redeliver(view: View, loop: ChurnLoop) -> bool:
    """Return whether a queue of its virtual host redelivers, or may. The overview counts all clients."""
    vhost = loop.connection.vhost
    return bool(_redelivering_queues(view, vhost)) or any(queue.vhost == vhost for queue in view.unread)


def _received_nothing(loop: ChurnLoop) -> bool:
    """Return whether the bytes show that nothing was delivered.

    One cycle with many packets may look like several cycles.
    """
    if loop.error is None or loop.packets is None or loop.received is None:
        return False
    return loop.packets < _MIN_PACKETS and loop.received >= _MIN_RECEIVED


def _redelivering_queues(view: View, vhost: str | None) -> list[Queue]:
    """Queues of a virtual host that redelivered recently."""
    moved = (each for each in view.queues if each.vhost == vhost and each.stats.redeliver)
    return sorted((each for each in moved if view.moved(each, "redeliver")), key=lambda each: each.name)


def _queues_of_loop(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the redelivering queues without another lasting consumer, which would have its own reason to requeue."""
    staying = {channel.name for channel in view.channels if len(view.channel_history(channel.name)) > 1}
    for queue in _redelivering_queues(view, finding.subject.vhost):
        others = [link for link in view.links(queue) if link.consumer.connection_name != finding.subject.name]
        if not any(link.consumer.channel_name in staying for link in others):
            yield queue.key


QUEUES_REDELIVERED_BY_LOOP = Relation(_queues_of_loop, queue_key)
"""The cause closes channels in a loop; the effect is about a queue whose messages are redelivered each time."""


def _finding(view: View, loop: ChurnLoop) -> Finding:
    connection = loop.connection
    queues = [
        each for each in _redelivering_queues(view, connection.vhost) if delta(view.history(each), "redeliver") > 0
    ]
    evidence = [
        loop_evidence(loop),
        Evidence(key="redelivered", value=loop.redelivered, source=source("/api/overview", "message_stats.redeliver")),
        Evidence(
            key="acked",
            value=loop.acked,
            source=source("/api/overview", "message_stats.ack", "message_stats.deliver_get"),
        ),
    ]
    if loop.said(*_ERROR_TEXTS):
        evidence.append(error_evidence(loop, f"{_ERROR_TEXTS[0][:-1]}N"))
    return Finding(
        rule=NAME,
        severity=loop_severity(view, loop),
        subject=connection_subject(connection),
        since=loop.since.iso(),
        facts={
            **loop_facts(view, loop),
            "queues": [queue.name for queue in queues],
            "redelivered_per_cycle": loop.redelivered,
            "acked_per_cycle": loop.acked,
            "delivered_per_cycle": loop.delivered,
        },
        evidence=tuple(evidence),
        involved=Involved(
            queues=tuple(map(queue_ref, queues)),
            connections=(connection.name,),
            clients=(connection.client_name,) if connection.client_name else (),
        ),
        certainty=loop_certainty(view, loop),
        seen_seconds=loop.lasts,
    )

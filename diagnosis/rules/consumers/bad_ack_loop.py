"""bad-ack-loop (B15): a consumer's channel is closed again and again, and none of its acknowledgements counts.

406 PRECONDITION_FAILED, unknown delivery tag: the consumer acknowledges a message twice, on another channel than the
one that delivered it, or with the tag of a channel that is closed. Its unacknowledged messages are redelivered each
time. The broker does not count such errors. What it shows is a connection that stays open, channels on it that open
and close, and redeliveries in every cycle.

Deliveries hide the length of the error text, so it is mostly not known who closes. A refused acknowledgement is not
counted. So a loop whose messages are acknowledged, in part, is none of this rule unless the length shows the error: a
client may take messages with an iterator, leave it after some, and close its channel. `consumer-flapping` and
`poison-drop` report what it returns.
Source: https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Evidence, Finding, Involved, Source, source
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
from diagnosis.rules.consumers._shared.comings import redelivering
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.objects import connection_subject
from diagnosis.series import delta, span

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
    loops = [
        each
        for each in churn_loops(view)
        if _is_bad_ack(each) and _may_redeliver(view, each) and (_is_proven(each) or not _acknowledges(view, each))
    ]
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


def _is_proven(loop: ChurnLoop) -> bool:
    """Return whether the broker's error text is as long as that of an unknown delivery tag."""
    return loop.said(*_ERROR_TEXTS)


def _acknowledges(view: View, loop: ChurnLoop) -> bool:
    """Return whether messages of the loop are acknowledged."""
    return _per_cycle(view, loop, loop.acked, "ack") >= MIN_PER_CYCLE


def _per_cycle(view: View, loop: ChurnLoop, total: float, *counters: str) -> float:
    """Return how many messages at most a cycle counted.

    The overview counts clients of other queues, too (`total`), and the queues count their lasting consumers.
    """
    counted = 0.0
    for queue in redelivering(view, loop.connection.vhost):
        history = tuple(seen for seen in view.history(queue) if seen.at.mono >= loop.since.mono)
        counted += delta(history, *counters) / max(1.0, loop.rate * span(history))
    return min(total, counted)


def _may_redeliver(view: View, loop: ChurnLoop) -> bool:
    """Return whether a queue of its virtual host redelivers, or may. The overview counts all clients."""
    vhost = loop.connection.vhost
    return bool(redelivering(view, vhost)) or any(queue.vhost == vhost for queue in view.unread)


def _received_nothing(loop: ChurnLoop) -> bool:
    """Return whether the bytes show that nothing was delivered.

    One cycle with many packets may look like several cycles.
    """
    if loop.error is None or loop.packets is None or loop.received is None:
        return False
    return loop.packets < _MIN_PACKETS and loop.received >= _MIN_RECEIVED


def _queues_of_loop(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the redelivering queues without another lasting consumer, which would have its own reason to requeue."""
    staying = {channel.name for channel in view.channels if len(view.channel_history(channel.name)) > 1}
    for queue in redelivering(view, finding.subject.vhost):
        others = [link for link in view.links(queue) if link.consumer.connection_name != finding.subject.name]
        if not any(link.consumer.channel_name in staying for link in others):
            yield queue.key


QUEUES_REDELIVERED_BY_LOOP = Relation(_queues_of_loop, queue_key)
"""The cause closes channels in a loop; the effect is about a queue whose messages are redelivered each time."""


def _counted(*counters: str) -> Source:
    return source("/api/overview", *counters) + source("/api/queues", *counters)


def _finding(view: View, loop: ChurnLoop) -> Finding:
    connection = loop.connection
    queues = [each for each in redelivering(view, connection.vhost) if delta(view.history(each), "redeliver") > 0]
    redelivered = _per_cycle(view, loop, loop.redelivered, "redeliver")
    acked = _per_cycle(view, loop, loop.acked, "ack")
    evidence = [
        loop_evidence(loop),
        Evidence(key="redelivered", value=redelivered, source=_counted("message_stats.redeliver")),
        Evidence(key="acked", value=acked, source=_counted("message_stats.ack", "message_stats.deliver_get")),
    ]
    if _is_proven(loop):
        evidence.append(error_evidence(loop, f"{_ERROR_TEXTS[0][:-1]}N"))
    return Finding(
        rule=NAME,
        severity=loop_severity(view, loop),
        subject=connection_subject(connection),
        since=loop.since.iso(),
        facts={
            **loop_facts(view, loop),
            "proven": _is_proven(loop),
            "queues": [queue.name for queue in queues],
            "redelivered_per_cycle": redelivered,
            "acked_per_cycle": acked,
            "delivered_per_cycle": _per_cycle(view, loop, loop.delivered, "deliver_get"),
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

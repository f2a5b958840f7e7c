"""bad-ack-loop (B15): a consumer's channel is closed over an acknowledgement, and it opens another one, and so on.

406 PRECONDITION_FAILED, unknown delivery tag: it acknowledges twice, on another channel than the delivery came on, or
with the tags of a channel that is gone. What it held is delivered again each time. The broker counts no such errors:
what shows is a connection that stays, channels on it that come and go, and redeliveries in every cycle.
Source: https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking; seen on 3.10 and 4.3.
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.closing import Closing, closings
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.kept import kept
from diagnosis.rules.consumers.refusals import SOME, loop_evidence, severity, stop_it, who
from diagnosis.series import delta
from diagnosis.words import some

NAME = "bad-ack-loop"

_TEXTS = tuple(f"PRECONDITION_FAILED - unknown delivery tag {'9' * digits}" for digits in range(1, 8))

_FEWEST_PACKETS = 3.5
"""The broker sends a consumer: channel.open-ok, basic.consume-ok, a delivery, and channel.close."""
_LEAST_ASKED = 50
"""Bytes that a client sends in a cycle: channel.open, close-ok, and what is refused (55 and more were seen)."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every application whose channels come and go on a connection that stays."""
    for loop in kept(view, _Loops).found:
        yield _finding(view, loop)


class _Loops:
    def __init__(self, view: View) -> None:
        loops = [each for each in closings(view) if _is_bad_ack(each)]
        fastest = max((each.rate for each in loops), default=0.0)
        # A connection that did a little of something else meanwhile looks like a slow loop beside the real one.
        self.found = tuple(each for each in loops if each.rate >= SOME * fastest)


def loops_of(view: View) -> frozenset[str]:
    """Names of the connections that this rule tells of."""
    return frozenset(each.connection.name for each in kept(view, _Loops).found)


def _is_bad_ack(loop: Closing) -> bool:
    if _got_nothing(loop):
        # What is redelivered is another's, as of a requeue-loop beside it (seen on 4.3.6).
        return False
    # What was delivered in a cycle comes again in the next one; the lengths of texts alone are not unique.
    return not loop.whole and loop.by_broker is not False and loop.delivered >= SOME and loop.redelivered >= SOME


def _got_nothing(loop: Closing) -> bool:
    """Whether its bytes say that nothing was delivered to it; many packets of one cycle may look like more cycles."""
    if loop.error is None or loop.packets is None or loop.received is None:
        return False
    return loop.packets < _FEWEST_PACKETS and loop.received >= _LEAST_ASKED


def _queues(view: View, vhost: str | None) -> list[Queue]:
    """Queues of a virtual host that redelivered lately."""
    moved = (each for each in view.queues if each.vhost == vhost and each.stats.redeliver)
    return sorted((each for each in moved if view.moved(each, "redeliver")), key=lambda each: each.name)


def _redelivering(view: View, finding: FindingReport) -> Iterable[Hashable]:
    """Those of them that redelivered to nobody who stays: consumers that are there throughout have other reasons."""
    staying = {channel.name for channel in view.channels if len(view.channel_history(channel.name)) > 1}
    for queue in _queues(view, finding.subject.vhost):
        others = [link for link in view.links(queue) if link.consumer.connection_name != finding.subject.name]
        if not any(link.consumer.channel_name in staying for link in others):
            yield queue.key


def _queue(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),) if finding.subject.kind == "queue" else ()


QUEUES_REDELIVERED_BY_LOOP = Relation(_redelivering, _queue)
"""The cause closes channels in a loop; what follows is about a queue that is redelivered each time."""


def _finding(view: View, loop: Closing) -> FindingReport:
    vhost = loop.connection.vhost
    queues = [queue.name for queue in _queues(view, vhost) if delta(view.history(queue), "redeliver") > 0]
    from_ = f" from queue {some(map(repr, queues))}" if queues else ""
    evidence = [
        loop_evidence(loop),
        EvidenceReport(
            what="redelivered",
            value=f"{loop.redelivered:.1f} messages a cycle{from_}",
            expected="0",
            source="/api/overview message_stats.redeliver",
        ),
        EvidenceReport(
            what="acknowledged",
            value=f"{loop.acked:.1f} of {loop.delivered:.1f} delivered a cycle",
            source="/api/overview message_stats.ack, deliver_get",
        ),
    ]
    if loop.said(*_TEXTS):
        evidence.append(
            EvidenceReport(
                what="the broker's error to it",
                value=f"{loop.error} bytes of text, as long as: {_TEXTS[0][:-1]}N",
                source="/api/connections send_oct, send_cnt",
            )
        )
    return FindingReport(
        rule=NAME,
        severity=severity(view, loop),
        subject=Subject(kind="connection", name=loop.connection.name, vhost=vhost, node=loop.connection.node),
        since=loop.since.iso(),
        summary=(
            f"{who(loop)} consumes{from_} on channels that are closed {loop.rate:.1f} times a second: what it held is "
            "delivered again each time"
        ),
        cause=(
            "Its connection stays, its channels do not. Most likely it acknowledges a delivery that the channel "
            "does not "
            "know (406 PRECONDITION_FAILED, unknown delivery tag): twice the same, on another channel than it came on, "
            "or one of a channel before. The broker's log says it in words."
        ),
        evidence=tuple(evidence),
        next_steps=(
            (
                "read the broker's log for the exact error: grep -A2 'Channel error on connection' "
                "/var/log/rabbitmq/*.log | grep -F 'operation basic.ack'"
            ),
            (
                f"let {loop.client!r} acknowledge each delivery once, on the channel that it came on, and drop the "
                "tags "
                "of a "
                "channel that was closed"
            ),
            *stop_it(loop, "bad acknowledgements"),
        ),
        runbook=runbook(NAME),
    )

"""auto-ack-consumer (B10): messages count as done when they are sent; a client that dies takes them along.

A fact about an application, not an event: one finding a virtual host. Private and short-lived queues (replies,
telemetry of one client) are left out: what they hold goes with the client anyway.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-modes
"""

from collections import defaultdict
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Link, RuleResult, View
from diagnosis.series import delta, span
from diagnosis.words import amount, client, lasting, some

NAME = "auto-ack-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """List the consumers of durable queues that acknowledge automatically."""
    found: dict[str, list[tuple[Queue, Link]]] = defaultdict(list)
    for queue in view.queues:
        if not queue.stats.deliver_no_ack or not queue.durable or queue.exclusive or queue.auto_delete:
            continue
        links = [link for link in view.links(queue) if link.consumer.ack_required is False]
        found[queue.vhost] += [(queue, link) for link in links]
    yield from (_finding(view, vhost, each) for vhost, each in sorted(found.items()) if each)


def _finding(view: View, vhost: str, found: list[tuple[Queue, Link]]) -> FindingReport:
    queues = {queue.key: queue for queue, _ in found}
    names = some(repr(name) for _, name in sorted(queues))
    who = sorted({client(link.connection, link.consumer.connection_name) for _, link in found})
    sent = sum(delta(view.history(queue), "deliver_no_ack") for queue in queues.values())
    seconds = max(span(view.history(queue)) for queue in queues.values())
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=None,
        summary=(
            f"{amount(len(found), 'consumer')} in vhost {vhost!r} acknowledge automatically: what "
            f"{some(map(repr, who))} "
            f"has not processed when it dies is lost (queues {names})"
        ),
        cause=(
            "With automatic acknowledgement the broker deletes a message as soon as it is sent. Nothing limits how "
            "much is "
            "sent either: a slow client fills its memory and the socket. Right for telemetry, wrong for orders."
        ),
        evidence=(
            EvidenceReport(
                what="consumers with automatic acknowledgement",
                value=some((f"{link.consumer.tag!r} of queue {queue.name!r}" for queue, link in found), 10),
                expected="none on queues whose messages matter",
                source="/api/consumers ack_required",
            ),
            EvidenceReport(
                what="sent that way",
                value=f"{amount(sent, 'message')} in {lasting(seconds)}",
                source="/api/queues message_stats.deliver_no_ack",
            ),
        ),
        next_steps=(
            f"see who they are: rabbitmqctl list_consumers -p {quote(vhost)}   # column ack_required",
            "where messages matter: acknowledge after processing, with a prefetch of 100 to 300",
        ),
        runbook=runbook(NAME),
    )

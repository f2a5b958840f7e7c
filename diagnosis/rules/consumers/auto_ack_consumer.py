"""auto-ack-consumer (B10): messages are acknowledged when they are sent, so a client that dies loses them.

This is a property of an application, not an event, so there is one finding per virtual host. It is an event where such
consumers end and come back again and again: then each queue has its own. Exclusive and auto-delete
queues (replies, telemetry of one client) are left out, because their messages are deleted with the client anyway.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-modes
"""

from collections import defaultdict
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.rules.consumers._shared.comings import LASTING, comings, recent_clients
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.series import delta, span

NAME = "auto-ack-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """List the consumers of durable queues that acknowledge automatically."""
    found: dict[str, list[tuple[Queue, ConsumerPath]]] = defaultdict(list)
    for queue in view.queues:
        if not queue.stats.deliver_no_ack or not queue.durable or queue.exclusive or queue.auto_delete:
            continue
        ends = comings(view.history(queue))
        if ends >= LASTING:
            yield _losing(view, queue, ends)
            continue
        links = [link for link in view.links(queue) if link.consumer.ack_required is False]
        found[queue.vhost] += [(queue, link) for link in links]
    yield from (_finding(view, vhost, each) for vhost, each in sorted(found.items()) if each)


def _losing(view: View, queue: Queue, ends: int) -> Finding:
    """Return the finding about a queue whose consumers acknowledge automatically and end again and again."""
    history, links = view.history(queue), view.links(queue)
    delivered = delta(history, "deliver_no_ack")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=history[0].at.iso(),
        facts={
            "vhost": queue.vhost,
            "consumers": [{"tag": link.consumer.tag, "queue": queue.name} for link in links],
            "clients": recent_clients(view, queue),
            "queues": [queue.name],
            "delivered": delivered,
            "ends": ends,
        },
        evidence=(
            Evidence(key="ends", value=ends, source=source("/api/queues", "consumers", "message_stats.deliver_no_ack")),
            Evidence(
                key="delivered",
                value=delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack"),
            ),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.LIKELY,
        seen_seconds=span(history),
    )


def _finding(view: View, vhost: str, found: list[tuple[Queue, ConsumerPath]]) -> Finding:
    queues = {queue.key: queue for queue, _ in found}
    links = [link for _, link in found]
    delivered = sum(delta(view.history(queue), "deliver_no_ack") for queue in queues.values())
    seconds = max(span(view.history(queue)) for queue in queues.values())
    listed: list[Fact] = [{"tag": link.consumer.tag, "queue": queue.name} for queue, link in found]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        facts={
            "vhost": vhost,
            "consumers": listed,
            "clients": client_names(links),
            "queues": sorted(name for _, name in queues),
            "delivered": delivered,
            "ends": None,
        },
        evidence=(
            Evidence(key="consumers", value=len(found), source=source("/api/consumers", "ack_required")),
            Evidence(
                key="delivered",
                value=delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_no_ack"),
            ),
        ),
        involved=involved_consumers(queues.values(), links),
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
    )

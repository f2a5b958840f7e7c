"""link-stalled (E22): a shovel or federation link says that it runs, and moves nothing: it waits for its target.

The link holds messages of its source unacknowledged, as many as its prefetch allows, and acknowledges none, because its
target confirms none. The law is that of stuck consumers; here the consumer is the link, so the cause is behind it.
Source: https://www.rabbitmq.com/docs/shovel; rabbitmq-server issues 9859 and 17429
"""

from collections.abc import Iterator

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.cluster._shared.link_flow import (
    LinkSource,
    Place,
    circulations,
    forwards,
    is_here,
    link_targets,
    stalled_links,
)
from diagnosis.rules.consumers._shared.objects import involved_consumers
from diagnosis.rules.consumers._shared.stalled_consumers import Stall

NAME = "link-stalled"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each link that holds messages of its source and settles none.

    One that returns them is the matter of link-target-refuses. The source of a shovel without a channel (protocol
    `local`) counts no acknowledgements; its own counter shows whether it moves messages.
    """
    circulating = circulations(view)
    for link_source, stall in stalled_links(view):
        counted = link_source.path is not None and link_source.path.channel is not None
        if stall.queue.key not in circulating and (counted or not forwards(view, link_source.link)):
            yield _finding(view, link_source, stall)


def _targets(view: View, found: LinkSource) -> tuple[Place, ...]:
    link = found.link
    return tuple(sorted(link_targets(view, link))) if link is not None and is_here(link) else ()


def _finding(view: View, found: LinkSource, stall: Stall) -> Finding:
    queue, link = stall.queue, found.link
    ready = queue.messages_ready or 0
    lasting = Severity.CRITICAL if ready else Severity.WARNING
    targets = _targets(view, found)
    alarm = any(check.ok is False and check.alarms for check in view.checks.values())
    return Finding(
        rule=NAME,
        severity=Severity.INFO if stall.early else lasting,
        subject=Subject(
            kind="link",
            name=found.name,
            vhost=(link.vhost if link else None) or queue.vhost,
            node=link.node if link else queue.node,
        ),
        since=iso(stall.since),
        facts={
            "kind": found.kind,
            "link": found.name,
            "vhost": (link.vhost if link else None) or queue.vhost,
            "node": link.node if link else None,
            "dynamic": link is not None and link.type != "static",
            "listed": link is not None,
            "state": link.state if link else None,
            "source": queue_facts(queue),
            "ready": ready,
            "held": queue.messages_unacked or 0,
            "held_seconds": stall.held_seconds,
            "full": stall.full,
            "published": stall.published,
            "warning_after_seconds": stall.warning_after_seconds,
            "target_queue": link.target_queue if link else None,
            "target_exchange": link.target_exchange if link else None,
            "target_address": link.destination if link else None,
            "targets_here": [name for _, name in targets],
            "alarm": alarm,
        },
        certainty=Certainty.EARLY if stall.early else Certainty.LIKELY,
        seen_seconds=stall.seen_seconds,
        evidence=(
            Evidence(key="settled", value=0, source=source("/api/queues", "message_stats.ack")),
            Evidence(
                key="held",
                value=queue.messages_unacked,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged") + source("/api/consumers", "prefetch_count"),
            ),
            Evidence(
                key="ready",
                value=ready,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready", "message_stats.publish"),
            ),
            Evidence(
                key="state",
                value=(link.state if link else None) or "not listed here",
                source=source("/api/shovels", "state") + source("/api/federation-links", "status"),
            ),
        ),
        involved=involved_consumers((queue,), stall.stuck),
    )

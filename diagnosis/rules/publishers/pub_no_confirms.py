"""pub-no-confirms (A04): channels publish without confirms, so a lost message would go unnoticed.

Nothing is wrong until a node dies or a channel is closed; then the messages in flight are lost, and the publisher does
not know which. Source: https://www.rabbitmq.com/docs/confirms, https://www.rabbitmq.com/docs/publishers#data-safety
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED
from diagnosis.rules.publishers._shared.native_publishers import (
    SETTLED_WHEN_SENT,
    is_native,
    native_publishers,
    without_links,
)
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    by_vhost,
    clients,
    first_seen,
    increase,
    involved_publishers,
    listed,
    publishers,
)

NAME = "pub-no-confirms"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host that has durable queues and such publishers."""
    yield from without_links(view, NAME)
    # The mode of a channel shows about 5 s after it was opened, so a single reading proves nothing.
    min_published = view.thresholds.publishers.no_confirms_least
    found = [
        each
        for each in (*publishers(view), *(link.as_active() for link in native_publishers(view)))
        if each.channel.confirm is False
        and each.channel.transactional is False
        and (each.channel.stats.publish or 0) >= min_published
        and each.published > increase(view, each.history, DROPPED)
        and each.seconds >= min(view.thresholds.early, view.thresholds.interval)
    ]
    if not found:
        return
    # If nothing has to survive a restart, a telemetry publisher needs no confirms.
    durable = {queue.vhost for queue in view.all_queues if queue.durable and not queue.exclusive}
    nodes_down = sorted(node.name for node in view.nodes if node.running is False and not node.being_drained)
    for vhost, group in by_vhost(found).items():
        if vhost in durable:
            yield _finding(vhost, group, nodes_down)


def _finding(vhost: str, group: list[ActivePublisher], nodes_down: list[str]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if nodes_down else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=first_seen(group),
        facts={
            "channels": len(group),
            "clients": clients(group),
            "publishers": listed(group),
            "publish_rate": sum(each.rate for each in group),
            "nodes_down": nodes_down,
            "amqp10": [each.client for each in group if is_native(each.connection)],
        },
        evidence=tuple(
            Evidence(
                key="publisher",
                value=each.published,
                unit=Unit.MESSAGES,
                source=SETTLED_WHEN_SENT
                if is_native(each.connection)
                else source("/api/channels", "confirm", "transactional", "message_stats.publish"),
                facts={"publisher": each.facts()},
            )
            for each in sorted(group, key=lambda each: (-each.published, each.channel.name))[:3]
        ),
        involved=replace(involved_publishers(group), nodes=tuple(nodes_down)),
        certainty=Certainty.CERTAIN,
        seen_seconds=max(each.seconds for each in group),
    )

"""pub-credit-flow (A06): flow control slows publishers down, because they send faster than the broker processes.

Flow control by itself is normal and needs no action. It is reported if it is permanent, and as a warning only if the
probes, which send little, wait too. The point up to which flow control reaches shows what is slow: the channel, or the
queues behind it.
Source: https://www.rabbitmq.com/docs/flow-control, https://www.rabbitmq.com/docs/connections#flow-control
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Finding, Severity, Subject, Unit, source
from ackscope.records import ProbeOutcome
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    clients,
    first_seen,
    involved_publishers,
    publishers,
)

NAME = "pub-credit-flow"

FLOW = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledPublisher:
    """A publisher in flow control.

    Attributes:
        channel_in_flow: the channel is throttled too, and not only its connection.
    """

    publisher: ActivePublisher
    channel_in_flow: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node whose publishers are throttled all the time."""
    limits = view.thresholds.publishers
    by_node: dict[str, list[ThrottledPublisher]] = {}
    for each in publishers(view):
        channel = each.channel
        # An idle publisher in flow is no overload: a quorum queue without a majority causes it (pub-confirm-stall).
        if channel.idle_since is not None or each.seconds < limits.flow_for:
            continue
        channel_share = _share([seen.value.state == FLOW for seen in each.history])
        history = view.connection_history(channel.connection_name or "")
        connection_share = _share([seen.value.state == FLOW for seen in history])
        if max(channel_share, connection_share) >= limits.flow_share:
            found = ThrottledPublisher(publisher=each, channel_in_flow=channel_share >= limits.flow_share)
            by_node.setdefault(channel.node or "", []).append(found)
    for node, group in sorted(by_node.items()):
        yield _finding(view, node, group)


def _share(states: list[bool]) -> float:
    return sum(states) / len(states) if len(states) >= 2 else 0.0


def _finding(view: View, node: str, group: list[ThrottledPublisher]) -> Finding:
    throttled = [each.publisher for each in group]
    slow = _slow_probes(view, node)
    queues = sorted(queue.name for queue in view.queues if queue.state == FLOW and queue.node == node)
    seconds = max(each.seconds for each in throttled)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if slow else Severity.INFO,
        subject=Subject(kind="node", name=node, node=node)
        if node
        else Subject(kind="cluster", name=view.window.cluster),
        since=first_seen(throttled),
        facts={
            "channels": len(throttled),
            "clients": clients(throttled),
            "publish_rate": sum(each.rate for each in throttled),
            "throttled_seconds": seconds,
            "probe_confirm_seconds": slow[0].confirm.p50 if slow else None,
            "queues_in_flow": queues,
            "channels_in_flow": any(each.channel_in_flow for each in group),
        },
        evidence=(*_of_publishers(throttled), *_of_probes(slow)),
        involved=replace(involved_publishers(throttled), nodes=(node,) if node else ()),
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
    )


def _slow_probes(view: View, node: str) -> list[ProbeOutcome]:
    limit = view.thresholds.publishers.flow_confirm
    slow = [
        each
        for each in view.outcomes_of("confirm")
        if each.doubtful is None and (each.confirm.p50 or 0.0) >= limit and (not node or each.node in {"", node})
    ]
    return sorted(slow, key=lambda each: (-(each.confirm.p50 or 0.0), each.stream))


def _of_publishers(throttled: list[ActivePublisher]) -> Iterator[Evidence]:
    for each in sorted(throttled, key=lambda each: (-each.rate, each.channel.name))[:3]:
        yield Evidence(
            key="publisher",
            value=each.rate,
            unit=Unit.PER_SECOND,
            source=source("/api/channels", "state", "pending_raft_commands", "message_stats.publish")
            + source("/api/connections", "state"),
            facts={
                "publisher": each.facts(),
                "readings": len(each.history),
                "readings_in_flow": sum(seen.value.state == FLOW for seen in each.history),
                "pending_raft_commands": each.channel.pending_raft_commands,
                "connection_state": each.connection.state if each.connection else None,
            },
        )


def _of_probes(slow: list[ProbeOutcome]) -> Iterator[Evidence]:
    for each in slow[:2]:
        yield Evidence(
            key="probe_confirm",
            value=each.confirm.p50,
            unit=Unit.SECONDS,
            source=source("probe confirm", "confirm"),
            facts={"stream": each.stream},
        )

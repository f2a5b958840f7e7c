"""disk-alarm (D02): a node has less free disk than its limit, and the broker blocks every publisher of the cluster.

Source: https://www.rabbitmq.com/docs/disk-alarms
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Source, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.largest_queues import by_disk, disk_evidence, is_on
from diagnosis.rules.nodes._shared.node_history import node_or_cluster
from diagnosis.rules.nodes._shared.resource_alarm import (
    Resource,
    alarm_facts,
    alarm_involved,
    alarm_since,
    blocked_evidence,
    evaluate_alarm,
)

NAME = "disk-alarm"
_REASON = "low on disk"
_DISK = Resource(
    rule=NAME,
    name="disk",
    field="disk_free_alarm",
    in_alarm=lambda node: node.disk_free_alarm,
    reasons=(_REASON, "& disk"),
)

_RAISED = 0.9
"""Share of the highest limit below which another one was raised, and did not only follow the memory of the host."""
_LEAST_HELD = 0.1

_AMPLE_BYTES = 20 * 2**30
"""Free bytes that are enough for any node; an alarm above it means that the limit is too high."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a disk alarm."""
    yield from evaluate_alarm(view, _DISK, _finding)


def _finding(view: View, name: str | None, where: Source) -> Finding:
    node, largest = view.node(name), by_disk(view, name)
    raised = _raised(view, node) if node else None
    evidence = [Evidence(key="alarm", source=where)]
    if node is not None and node.disk_free is not None and node.disk_free_limit is not None:
        evidence.append(
            Evidence(
                key="disk_free",
                value=node.disk_free,
                unit=Unit.BYTES,
                source=source("/api/nodes", "disk_free", "disk_free_limit"),
                facts={"limit_bytes": node.disk_free_limit, "behind_alarm": node.disk_free > node.disk_free_limit},
            )
        )
    evidence += [*blocked_evidence(view, _REASON), *disk_evidence(largest)]
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=node_or_cluster(view, name),
        since=alarm_since(view, name, "disk"),
        facts={
            **alarm_facts(view, name, "disk", largest),
            "free_bytes": node.disk_free if node else None,
            "limit_bytes": node.disk_free_limit if node else None,
            "limit_too_high": node is not None and _limit_too_high(node),
            "raised_from_bytes": raised[0] if raised else None,
            "raised_to_bytes": raised[1] if raised else None,
            "queues_explain": node is None or _queues_explain(view, node),
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
        involved=alarm_involved(view, name, largest),
    )


def _limits(view: View, node: Node) -> tuple[int, int]:
    """Return the lowest and the highest limit within the window; the present one is some seconds behind the alarm."""
    known = [limit for seen in view.node_history(node.name) if (limit := seen.value.disk_free_limit) is not None]
    return min(known, default=0), max(known, default=0)


def _raised(view: View, node: Node) -> tuple[int, int] | None:
    """Return both limits if somebody raised it within the window above what is free."""
    (lowest, highest), free = _limits(view, node), node.disk_free
    return (lowest, highest) if free is not None and lowest < free < highest and lowest < _RAISED * highest else None


def _queues_explain(view: View, node: Node) -> bool:
    """Return whether the queues of a node hold at least a tenth of what its disk lacks; True if that is unknown.

    Their files are larger than their messages: a quorum queue keeps what was consumed until its log is truncated.
    """
    if node.disk_free is None or not view.fresh("queues"):
        return True
    held = sum(queue.message_bytes or 0 for queue in view.queues if is_on(queue, node.name))
    return held >= _LEAST_HELD * (_limits(view, node)[1] - node.disk_free)


def _limit_too_high(node: Node) -> bool:
    free, limit = node.disk_free, node.disk_free_limit
    return free is not None and limit is not None and _AMPLE_BYTES < free < limit

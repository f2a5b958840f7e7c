"""memory-alarm (D01): a node is over its memory limit, and the broker blocks every publisher of the cluster."""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Source, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.largest_queues import by_memory, is_on
from diagnosis.rules.nodes._shared.largest_queues import memory_evidence as queue_evidence
from diagnosis.rules.nodes._shared.memory_breakdown import dominant_group, memory_evidence
from diagnosis.rules.nodes._shared.node_history import node_or_cluster
from diagnosis.rules.nodes._shared.resource_alarm import (
    Resource,
    alarm_facts,
    alarm_involved,
    alarm_since,
    blocked_evidence,
    evaluate_alarm,
)

NAME = "memory-alarm"
_REASON = "low on memory"
_LOWERED = 0.9
"""Share of the earlier limit below which the limit was lowered, and did not only follow the memory of the host."""
_MEMORY = Resource(
    rule=NAME, name="memory", field="mem_alarm", in_alarm=lambda node: node.mem_alarm, reasons=(_REASON,)
)


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node with a memory alarm."""
    yield from evaluate_alarm(view, _MEMORY, _finding)


def _lowered_from(view: View, node: Node) -> int | None:
    """Return the limit that a node had before, if somebody lowered it within the window."""
    before = max((seen.value.mem_limit or 0 for seen in view.node_history(node.name)), default=0)
    return before if node.mem_limit is not None and node.mem_limit < _LOWERED * before else None


def _queues_explain(view: View, node: Node) -> bool:
    """Return whether the queues of a node hold at least what it uses above its limit; True if that is unknown."""
    if node.mem_used is None or node.mem_limit is None or not view.fresh("queues"):
        return True
    held = sum((queue.memory or 0) + (queue.message_bytes or 0) for queue in view.queues if is_on(queue, node.name))
    return held >= node.mem_used - node.mem_limit


def _finding(view: View, name: str | None, where: Source) -> Finding:
    node, largest = view.node(name), by_memory(view, name)
    evidence = [Evidence(key="alarm", source=where)]
    if node is not None and node.mem_used is not None and node.mem_limit is not None:
        evidence.append(
            Evidence(
                key="memory_used",
                value=node.mem_used,
                unit=Unit.BYTES,
                source=source("/api/nodes", "mem_used", "mem_limit"),
                facts={"limit_bytes": node.mem_limit, "behind_alarm": node.mem_used < node.mem_limit},
            )
        )
    evidence += [*blocked_evidence(view, _REASON), *memory_evidence(view, name), *queue_evidence(largest)]
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=node_or_cluster(view, name),
        since=alarm_since(view, name, "memory"),
        facts={
            **alarm_facts(view, name, "memory", largest),
            "dominant_group": dominant_group(view, name),
            "lowered_from_bytes": _lowered_from(view, node) if node else None,
            "queues_explain": node is None or _queues_explain(view, node),
            "used_bytes": node.mem_used if node else None,
            "limit_bytes": node.mem_limit if node else None,
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence),
        involved=alarm_involved(view, name, largest),
    )

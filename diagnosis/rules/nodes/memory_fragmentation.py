"""memory-fragmentation (D10): much of a node's memory is free inside its allocators and not returned to the system.

The memory alarm counts this memory as used. On an idle node most memory is free inside the allocators, which is
harmless, so it is reported only near the limit. Source: https://www.rabbitmq.com/docs/memory-use#preallocated-memory
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.memory_breakdown import UNUSED, total
from diagnosis.rules.nodes._shared.node_history import node_subject

NAME = "memory-fragmentation"
_RELEVANT_FROM = 0.5
"""Used memory, as a share of the limit, above which fragmentation matters."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node that uses half of its limit or more."""
    for node in view.nodes:
        memory = view.memory.get(node.name)
        used, limit = node.mem_used, node.mem_limit
        if not node.running or memory is None or used is None or not limit or used <= _RELEVANT_FROM * limit:
            continue
        whole = total(memory)
        if not whole or not any(part in memory.parts for part in UNUSED):
            continue
        unused = sum(memory.parts.get(part, 0) for part in UNUSED)
        limits = view.thresholds.nodes
        if unused > limits.memory_unused * whole and unused >= limits.memory_unused_least:
            yield _finding(view, node, unused, whole)


def _finding(view: View, node: Node, unused: int, whole: int) -> Finding:
    facts = {
        "unused_bytes": unused,
        "total_bytes": whole,
        "unused_share": unused / whole,
        "used_bytes": node.mem_used,
        "limit_bytes": node.mem_limit,
        "used_share": (node.mem_used or 0) / (node.mem_limit or 1),
        "in_use_bytes": whole - unused,
        "limit_share": view.thresholds.nodes.memory_unused,
    }
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=node_subject(node.name),
        facts=facts,
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(
                key="unused",
                value=unused,
                unit=Unit.BYTES,
                source=source("/api/nodes/<node>/memory", *UNUSED),
            ),
            Evidence(
                key="memory_used",
                value=node.mem_used,
                unit=Unit.BYTES,
                source=source("/api/nodes", "mem_used", "mem_limit"),
            ),
        ),
        involved=Involved(nodes=(node.name,)),
    )

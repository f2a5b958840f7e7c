"""memory-fragmentation (D10): much of a node's memory is free inside, and not given back to the system.

The alarm counts it all the same. Of an idle node most is unused and nobody minds: it is told where it matters, near
the limit. Source: https://www.rabbitmq.com/docs/memory-use#preallocated-memory
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.memory_use import UNUSED, total
from diagnosis.rules.nodes.seen import of_node, on
from diagnosis.words import size

NAME = "memory-fragmentation"
_MATTERS = 0.5
"""Memory used, of the limit, from which on it matters where it goes."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node that uses half of its limit or more."""
    for node in view.nodes:
        memory = view.memory.get(node.name)
        used, limit = node.mem_used, node.mem_limit
        if not node.running or memory is None or used is None or not limit or used <= _MATTERS * limit:
            continue
        whole = total(memory)
        if not whole or not any(part in memory.parts for part in UNUSED):
            continue
        unused = sum(memory.parts.get(part, 0) for part in UNUSED)
        limits = view.thresholds.nodes
        if unused > limits.memory_unused * whole and unused >= limits.memory_unused_least:
            yield _finding(view, node, unused, whole)


def _finding(view: View, node: Node, unused: int, whole: int) -> FindingReport:
    share, use = unused / whole, (node.mem_used or 0) / (node.mem_limit or 1)
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=of_node(node.name),
        since=None,
        summary=(
            f"{share:.0%} of the memory of node {node.name!r} is free inside and not given back: it stands at "
            f"{use:.0%} of its limit with {size(whole - unused)} in use"
        ),
        cause=(
            "The allocators of Erlang keep memory that messages or processes have left; single pieces still in use "
            "hold whole blocks. The memory alarm counts it as used."
        ),
        evidence=(
            EvidenceReport(
                what="kept and not used",
                value=f"{size(unused)} of {size(whole)} ({share:.0%})",
                expected=f"below {view.thresholds.nodes.memory_unused:.0%}",
                source="/api/nodes/<node>/memory allocated_unused, reserved_unallocated",
            ),
            EvidenceReport(
                what="memory used",
                value=f"{size(node.mem_used or 0)} ({use:.0%} of the limit)",
                source="/api/nodes mem_used, mem_limit",
            ),
        ),
        next_steps=(
            f"see it: rabbitmq-diagnostics {on(node.name)}memory_breakdown --unit MB",
            f"ask for it back: rabbitmqctl {on(node.name)}force_gc",
            "wait: new messages use it before anything else is taken from the system",
            "restart the node when it is calm; that gives all of it back",
        ),
        runbook=runbook(NAME),
    )

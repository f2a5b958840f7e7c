"""erlang-process-limit (D07): a node runs out of Erlang processes; at the limit its runtime stops.

Every connection, channel and queue uses a few. Source: https://www.rabbitmq.com/docs/runtime#process-limit
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_subject, since_start, trailing
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "erlang-process-limit"
_PER_OBJECT = 20
"""Maximum processes per connection, channel and queue; more are not caused by clients and queues."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        if _use(node) <= limits.processes_near:
            continue
        near = trailing(since_start(view.node_history(node.name)), lambda seen: _use(seen) > limits.processes_near)
        if span(near) < view.thresholds.early:
            continue
        recent = last(near, view.thresholds.interval)
        critical = all(_use(seen.value) > limits.processes_critical for seen in recent)
        yield _finding(view, node, near, Severity.CRITICAL if critical else Severity.WARNING)


def _use(node: Node) -> float:
    used, total = node.proc_used, node.proc_total
    return used / total if node.running and used is not None and total else 0.0


def _finding(view: View, node: Node, near: Series[Node], severity: Severity) -> Finding:
    # Absent is not zero: only what was read is counted.
    counts: dict[str, int | None] = {
        "connections": sum(each.node == node.name for each in view.connections) if view.fresh("connections") else None,
        "channels": sum(each.node == node.name for each in view.channels) if view.fresh("channels") else None,
        "queues": sum(each.node == node.name for each in view.all_queues) if view.fresh("queues") else None,
    }
    known = {name: count for name, count in counts.items() if count is not None}
    facts: dict[str, Fact] = {
        "used": node.proc_used,
        "limit": node.proc_total,
        "used_share": _use(node),
        "near_share": view.thresholds.nodes.processes_near,
        **counts,
        # None: not everything was read, so it is not known.
        "explained_by_clients": (
            (node.proc_used or 0) <= _PER_OBJECT * (sum(known.values()) + 100) if len(known) == len(counts) else None
        ),
    }
    evidence = [Evidence(key="processes", value=node.proc_used, source=source("/api/nodes", "proc_used", "proc_total"))]
    if known:
        where = source("/api/connections") + source("/api/channels") + source("/api/queues")
        evidence.append(Evidence(key="objects", source=where))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_subject(node.name),
        since=near[0].at.iso(),
        facts=facts,
        certainty=Certainty.CERTAIN,
        seen_seconds=span(near),
        evidence=tuple(evidence),
        involved=Involved(nodes=(node.name,)),
    )

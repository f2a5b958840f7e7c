"""network-partition (E02): nodes lost each other, continued separately, and disagree now.

Mnesia only: with Khepri (every cluster from 4.3 on) the smaller side stops instead, which node-down and
metadata-minority report.
Source: https://www.rabbitmq.com/docs/partitions
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import partitioned, uses_khepri
from diagnosis.rules.nodes._shared.node_history import cluster_subject
from diagnosis.series import span

NAME = "network-partition"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for a cluster in which any node reports a partition."""
    if any(node.partitions for node in view.nodes):
        yield _finding(view)
    elif len(view.nodes) > 1 and uses_khepri(view):
        yield Inconclusive(rule=NAME, reason="khepri", permanent=True)


def _finding(view: View) -> Finding:
    seen = partitioned(view)
    split = sorted((node for node in view.nodes if node.partitions), key=lambda node: node.name)
    not_running = sorted(node.name for node in view.nodes if node.running is False)
    evidence = [
        Evidence(
            key="partitions",
            source=source("/api/nodes", "partitions"),
            facts={"node": node.name, "lost_nodes": sorted(node.partitions or ())},
        )
        for node in split[:5]
    ]
    if not_running:
        evidence.append(
            Evidence(key="not_running", source=source("/api/nodes", "running"), facts={"not_running": not_running})
        )
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=cluster_subject(view),
        since=seen[0].at.iso() if seen else None,
        facts={"split_nodes": [node.name for node in split], "smaller_side": _smaller_side(view)},
        certainty=Certainty.CERTAIN,
        seen_seconds=span(seen),
        evidence=tuple(evidence),
        involved=Involved(nodes=tuple(node.name for node in split)),
    )


def _smaller_side(view: View) -> list[str]:
    """Return the nodes that lost more peers than the rest, likely the smaller side; empty if that is unclear."""
    most = max(len(node.partitions or ()) for node in view.nodes)
    few = sorted(node.name for node in view.nodes if len(node.partitions or ()) == most)
    return few if most > 1 and 2 * len(few) < len(view.nodes) else []

"""node-draining (E11): a node is in maintenance: it accepts no clients and leads no queues, on purpose.

It is information that explains the consequences, and a warning once the maintenance was probably forgotten. Where no
other node accepts clients, the whole broker is out of service, whether on purpose or not: critical.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Impact, Involved, Severity, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_subject, trailing
from diagnosis.series import span
from diagnosis.window import Series

NAME = "node-draining"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node in maintenance."""
    for node in sorted(view.nodes, key=lambda node: node.name):
        if node.being_drained:
            yield _finding(view, node)


def _drained(view: View, name: str) -> Series[Node]:
    """Return the latest consecutive readings of the node in maintenance."""
    recent = trailing(view.node_history(name), lambda node: bool(node.being_drained))
    long = trailing(view.node_trend(name), lambda node: bool(node.being_drained))
    return long if span(long) > span(recent) else recent


def _finding(view: View, node: Node) -> Finding:
    drained = _drained(view, node.name)
    seconds = span(drained)
    forgotten = seconds >= view.thresholds.cluster.draining_for
    # A node whose state is not reported may accept clients.
    alone = node.running is True and all(each.running is False or each.being_drained for each in view.nodes)
    since = drained[0].at if drained else view.now
    earlier = [seen.value.connections or 0 for seen in view.window.readings("overview") if seen.at.mono < since.mono]
    # The last readings may be from the seconds in which it closes its connections.
    before = max(earlier, default=0)
    evidence = [
        Evidence(key="maintenance", source=source("/api/nodes", "being_drained")),
        Evidence(key="state", source=source("/api/nodes", "running")),
    ]
    if alone and before and view.overview is not None and view.overview.connections is not None:
        evidence.append(
            Evidence(
                key="clients",
                value=view.overview.connections,
                source=source("/api/overview", "object_totals.connections"),
                facts={"before": before},
            )
        )
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if alone else Severity.WARNING if forgotten else Severity.INFO,
        subject=node_subject(node.name),
        since=drained[0].at.iso() if drained else None,
        facts={"forgotten": forgotten, "running": node.running, "alone": alone, "nodes": len(view.nodes)},
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        own_impact=None if alone else Impact.RISK,
        involved=Involved(nodes=(node.name,)),
    )

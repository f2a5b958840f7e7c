"""disk-limit-unsafe (D05): the free disk limit raises its alarm too late, and free disk is low enough to matter.

RabbitMQ's default of 50 MB is meant for development; a node that runs out of disk stops, and may not start again.
Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import cluster_subject

NAME = "disk-limit-unsafe"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all nodes of the cluster whose limit does not protect them."""
    unsafe = sorted((node for node in view.nodes if _is_unsafe(view, node)), key=lambda node: node.name)
    if unsafe:
        yield _finding(view, unsafe)


def _is_unsafe(view: View, node: Node) -> bool:
    free, limit, memory = node.disk_free, node.disk_free_limit, node.mem_limit
    if not node.running or free is None or limit is None or not memory:
        return False
    # The default is common; with enough free disk it is not worth a finding.
    return limit <= view.thresholds.nodes.disk_unsafe_limit and free < memory


def _finding(view: View, nodes: list[Node]) -> Finding:
    limits = [{"node": each.name, "limit_bytes": each.disk_free_limit, "free_bytes": each.disk_free} for each in nodes]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=cluster_subject(view),
        facts={"nodes": limits, "needed_bytes": max(each.mem_limit or 0 for each in nodes)},
        certainty=Certainty.CERTAIN,
        evidence=(Evidence(key="limits", source=source("/api/nodes", "disk_free_limit", "disk_free", "mem_limit")),),
        involved=Involved(nodes=tuple(each.name for each in nodes)),
    )

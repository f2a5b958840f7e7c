"""disk-limit-unsafe (D05): the free disk limit would raise its alarm too late, and the disk is short enough to matter.

RabbitMQ's default of 50 MB is for development; a node that runs out of disk ends, and may not start again.
Source: https://www.rabbitmq.com/docs/production-checklist#resource-limits-disk-space
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_cluster
from diagnosis.words import amount, size, some

NAME = "disk-limit-unsafe"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all nodes of the cluster whose limit is no protection."""
    unsafe = sorted((node for node in view.nodes if _is_unsafe(view, node)), key=lambda node: node.name)
    if unsafe:
        yield _finding(view, unsafe)


def _is_unsafe(view: View, node: Node) -> bool:
    free, limit, memory = node.disk_free, node.disk_free_limit, node.mem_limit
    if not node.running or free is None or limit is None or not memory:
        return False
    # Of a roomy disk it is not told: the default is everywhere.
    return limit <= view.thresholds.nodes.disk_unsafe_limit and free < memory


def _finding(view: View, nodes: list[Node]) -> FindingReport:
    told = [f"{each.name}: limit {size(each.disk_free_limit or 0)}, {size(each.disk_free or 0)} free" for each in nodes]
    which = f"Node {nodes[0].name!r} has" if len(nodes) == 1 else f"{amount(len(nodes), 'node')} have"
    wanted = max(each.mem_limit or 0 for each in nodes)
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=of_cluster(view),
        since=None,
        summary=f"{which} a free disk limit that is no protection: the alarm would come too late",
        cause=(
            "A node may write out all its memory at once; with less disk than that the alarm comes too late, and a "
            "node whose disk is full ends. The limit is RabbitMQ's default, or lower."
        ),
        evidence=(
            EvidenceReport(
                what="free disk limit",
                value=some(told),
                expected=f"as much as the memory limit, {size(wanted)}",
                source="/api/nodes disk_free_limit, disk_free, mem_limit",
            ),
        ),
        next_steps=(
            f"extend the volume, or free some of it: {size(wanted)} and more should be free",
            "until then, a limit below what is free: rabbitmqctl set_disk_free_limit 2GB   # holds until restart",
            "then set in rabbitmq.conf: disk_free_limit.relative = 1.0   # and restart the node when it is calm",
        ),
        runbook=runbook(NAME),
    )

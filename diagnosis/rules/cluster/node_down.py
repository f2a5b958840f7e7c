"""node-down (E01): a node of the cluster does not run.

A node in maintenance is suppressed: somebody stopped it on purpose (node-draining watches that it comes back).
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Suppressed, source
from ackscope.snapshot import Node, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import (
    absence,
    accepts_but_hangs,
    confirmed_stopped,
    other_node,
    running_nodes,
)
from diagnosis.rules.cluster._shared.replica_state import queue_list, queue_refs
from diagnosis.rules.nodes._shared.node_history import node_subject
from diagnosis.series import span
from diagnosis.window import Series

NAME = "node-down"

_NEAR = 0.9
"""Share of a limit above which, when the node was last seen, the limit may be why it stopped."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node that does not run."""
    for node in sorted(view.nodes, key=lambda node: node.name):
        if node.running is not False:
            continue
        if node.being_drained:
            yield Suppressed(rule=NAME, subject=node_subject(node.name), reason="maintenance")
        elif node.name in confirmed_stopped(view):
            yield _finding(view, node.name, absence(view, node.name))


def _finding(view: View, name: str, away: Series[Node]) -> Finding:
    seconds, running, count = span(away), [node.name for node in running_nodes(view)], len(view.nodes)
    limit = view.thresholds.cluster.node_down_for
    majority = 2 * len(running) > count
    severity = Severity.CRITICAL if not majority else Severity.WARNING if seconds >= limit else Severity.INFO
    homed = [queue for queue in view.all_queues if queue.type == "classic" and queue.node == name]
    replicated = [queue for queue in view.all_queues if queue.members and name in queue.members]
    # A stopping node is briefly reported as running, without any values.
    before = [seen.value for seen in view.node_history(name)[: -len(away)] if seen.value.uptime_seconds is not None]
    last_seen = before[-1] if before else None
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_subject(name),
        since=away[0].at.iso(),
        facts={
            "nodes": count,
            "running_nodes": running,
            "other_node": other_node(view, name),
            "majority": majority,
            "classic_queues": len(homed),
            "replicated_queues": len(replicated),
            "near_limits": _near_limits(last_seen),
            "accepts_connections": any(
                outcome.node == name and accepts_but_hangs(outcome) for outcome in view.outcomes_of("handshake")
            ),
            "warning_after_seconds": limit,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=tuple(_evidence(view, name, last_seen, homed, replicated)),
        involved=Involved(nodes=(name,), queues=queue_refs([*homed, *replicated])),
    )


def _evidence(
    view: View, name: str, last_seen: Node | None, homed: list[Queue], replicated: list[Queue]
) -> Iterator[Evidence]:
    yield Evidence(key="state", source=source("/api/nodes", "running"))
    yield Evidence(key="running", value=len(running_nodes(view)), source=source("/api/nodes", "running"))
    if last_seen is not None:
        yield Evidence(
            key="before",
            source=source("/api/nodes", "uptime", "mem_used", "fd_used", "proc_used"),
            facts={"uptime_seconds": last_seen.uptime_seconds, "used_shares": _used_shares(last_seen)},
        )
    for outcome in view.outcomes_of("handshake"):
        if outcome.node == name:
            for step, result in sorted(outcome.steps.items()):
                if result.reason is not None:
                    where = source("probe handshake", step)
                    yield Evidence(key="handshake", value=result.reason, source=where, facts={"step": step})
    if homed:
        where = source("/api/queues", "node")
        yield Evidence(key="classic_queues", value=len(homed), source=where, facts=queue_list(homed))
    if replicated:
        where = source("/api/queues", "members")
        yield Evidence(key="replicated_queues", value=len(replicated), source=where, facts=queue_list(replicated))


def _used_shares(node: Node) -> dict[str, float]:
    """Return the used share of each limit that stops a node or blocks publishers."""
    values = {
        "memory": (node.mem_used, node.mem_limit),
        "descriptors": (node.fd_used, node.fd_total),
        "processes": (node.proc_used, node.proc_total),
    }
    return {name: used / limit for name, (used, limit) in values.items() if used is not None and limit}


def _near_limits(node: Node | None) -> dict[str, float]:
    """Return the used share of the limits that the node was near when last seen; `disk` is 1 if used up."""
    if node is None:
        return {}
    near = {name: share for name, share in _used_shares(node).items() if share >= _NEAR}
    if node.disk_free is not None and node.disk_free_limit and node.disk_free <= node.disk_free_limit:
        near["disk"] = 1.0
    return near

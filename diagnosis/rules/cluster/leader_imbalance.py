"""leader-imbalance (E08): most leaders are on one node, and most of the traffic with them.

It often follows a rolling restart: the node that comes back last leads no queue. Only quorum queues and streams are
counted, because the leader of a classic queue cannot move.
Source: https://www.rabbitmq.com/docs/quorum-queues#replica-rebalancing
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import running_nodes
from diagnosis.rules.nodes._shared.node_history import node_subject
from diagnosis.series import delta, span

NAME = "leader-imbalance"

_MIN_NODES = 3
"""With two nodes each has half of the leaders at best, so there is little to gain."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for a cluster in which one node leads most of the queues in use."""
    limits = view.thresholds.cluster
    if len(running_nodes(view)) < _MIN_NODES:
        return
    led = [(queue, node) for queue in view.queues if queue.members and (node := _leader(queue))]
    counts = Counter(node for _, node in led)
    if len(led) < limits.leader_queues:
        return
    node, most = min(counts.items(), key=lambda item: (-item[1], item[0]))
    if most <= limits.leader_share * len(led):
        return
    traffic: Counter[str] = Counter()
    seconds = 0.0
    for queue, leader in led:
        if not (view.moved(queue, "publish") or view.moved(queue, "deliver_get")):
            continue
        history = view.history(queue)
        traffic[leader] += delta(history, "publish", "deliver_get")
        seconds = max(seconds, span(history))
    if seconds < view.thresholds.interval or traffic[node] <= limits.leader_share * sum(traffic.values()):
        return
    yield _finding(view, node, counts, traffic, seconds)


def _leader(queue: Queue) -> str | None:
    # 3.x names no leader of a stream; the node is its leader.
    return queue.leader or queue.node


def _finding(view: View, name: str, counts: Counter[str], traffic: Counter[str], seconds: float) -> Finding:
    nodes = running_nodes(view)
    total, share = sum(counts.values()), traffic[name] / sum(traffic.values())
    evidence = [
        Evidence(
            key="leaders", value=counts[node.name], source=source("/api/queues", "leader"), facts={"node": node.name}
        )
        for node in nodes
    ]
    evidence.append(
        Evidence(
            key="traffic",
            value=share,
            unit=Unit.SHARE,
            source=source("/api/queues", "message_stats.publish", "message_stats.deliver_get"),
        )
    )
    evidence += [
        Evidence(key="run_queue", value=node.run_queue, source=source("/api/nodes", "run_queue", "processors"))
        for node in nodes
        if node.run_queue is not None and node.name == name
    ]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=node_subject(name),
        facts={
            "leaders": counts[name],
            "queues": total,
            "traffic_share": share,
            "watched_seconds": seconds,
            "nodes": len(nodes),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=Involved(nodes=(name,)),
    )

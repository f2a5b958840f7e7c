"""leader-imbalance (E08): most leaders are on one node, and most of the traffic with them.

Follows a rolling restart: whoever comes back last leads nothing. Only quorum queues and streams are counted: the
leader of a classic queue cannot move.
Source: https://www.rabbitmq.com/docs/quorum-queues#replica-rebalancing
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import running
from diagnosis.series import delta, span
from diagnosis.words import lasting

NAME = "leader-imbalance"

_NODES = 3
"""With two nodes, half of the leaders are on each at best, and little is gained."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for a cluster in which one node leads most of the queues that are in use."""
    limits = view.thresholds.cluster
    if len(running(view)) < _NODES:
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
    # 3.x names no leader of a stream; the node is it.
    return queue.leader or queue.node


def _finding(view: View, name: str, counts: Counter[str], traffic: Counter[str], seconds: float) -> FindingReport:
    total, moved = sum(counts.values()), sum(traffic.values())
    nodes = running(view)
    evidence = [
        EvidenceReport(
            what=f"leaders at {node.name!r}",
            value=f"{counts[node.name]} of {total}",
            expected=f"about {total / len(nodes):.0f}",
            source="/api/queues leader",
        )
        for node in nodes
    ]
    evidence.append(
        EvidenceReport(
            what=f"messages through queues led at {name!r}",
            value=f"{traffic[name] / moved:.0%} of all in {lasting(seconds)}",
            expected=f"about {1 / len(nodes):.0%}",
            source="/api/queues message_stats.publish, deliver_get",
        )
    )
    evidence += [
        EvidenceReport(
            what=f"run queue of {node.name!r}", value=f"{node.run_queue}", source="/api/nodes run_queue, processors"
        )
        for node in nodes
        if node.run_queue is not None and node.name == name
    ]
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="node", name=name, node=name),
        since=None,
        summary=f"Node {name!r} leads {counts[name]} of {total} quorum queues and streams, with "
        f"{traffic[name] / moved:.0%} of their traffic: it works for the others",
        cause="Leaders stay where they are: after a restart of the others they have gathered here, or all queues were "
        "declared through this node (the default queue_leader_locator is client-local).",
        evidence=tuple(evidence),
        next_steps=(
            (
                "spread them, in a quiet hour (each leader that moves stops its queue for a moment): "
                'rabbitmq-queues rebalance all --vhost-pattern ".*" --queue-pattern ".*"'
            ),
            "later: queue_leader_locator = balanced in rabbitmq.conf, for queues that are declared from then on",
        ),
        runbook=runbook(NAME),
    )

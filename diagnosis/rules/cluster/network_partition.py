"""network-partition (E02): nodes lost each other, went on apart, and hold different truths now.

Mnesia only: with Khepri (every cluster from 4.3 on) the smaller side stops instead, and node-down and
metadata-minority tell of it.
Source: https://www.rabbitmq.com/docs/partitions
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.metadata_minority import with_khepri
from diagnosis.rules.cluster.standing import tail
from diagnosis.series import span
from diagnosis.window import Series
from diagnosis.words import lasting, some

NAME = "network-partition"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for a cluster in which any node tells of a partition."""
    if any(node.partitions for node in view.nodes):
        yield _finding(view)
    elif len(view.nodes) > 1 and with_khepri(view):
        yield InconclusiveReport(
            rule=NAME,
            because="with Khepri the broker tells of no partitions: the smaller side stops, and node-down, "
            "metadata-minority and quorum-queue-minority tell of that",
            needs="nothing",
            permanent=True,
        )


def split(view: View) -> Series[tuple[Node, ...]]:
    """The latest readings in a row in which a node told of a partition."""
    return tail(view.window.readings("nodes"), lambda nodes: any(node.partitions for node in nodes))


def _finding(view: View) -> FindingReport:
    seen = split(view)
    split_nodes = sorted((node for node in view.nodes if node.partitions), key=lambda node: node.name)
    evidence = [
        EvidenceReport(
            what=f"nodes that {node.name!r} was parted from",
            value=some(sorted(node.partitions or ()), 5),
            expected="none",
            source="/api/nodes partitions",
        )
        for node in split_nodes[:5]
    ]
    away = sorted(node.name for node in view.nodes if node.running is False)
    if away:
        evidence.append(
            EvidenceReport(
                what="nodes that the answering node does not see run",
                value=some(away, 5),
                expected="none",
                source="/api/nodes running",
            )
        )
    minority = _smaller(view)
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=seen[0].at.iso() if seen else None,
        summary=f"The cluster is split for {lasting(span(seen))} or more: {some([n.name for n in split_nodes], 5)} "
        "lost others and went on apart; queues may exist twice, and messages of one side will be lost",
        cause="Nodes did not hear from each other for longer than net_ticktime (a network fault, a frozen or "
        "overloaded "
        "machine), and each side took the other for dead. It does not heal by itself with the strategy `ignore`.",
        evidence=tuple(evidence),
        next_steps=(
            "see both sides: rabbitmq-diagnostics cluster_status on each node; and that the network is well again",
            "choose the side to trust: the one with most clients and most recent messages",
            (
                f"restart each node of the other side{minority}: rabbitmqctl -n NODE stop_app; rabbitmqctl -n NODE "
                "start_app"
            ),
            "what that side took in meanwhile is lost with it: drain its queues first where that matters",
            "later: cluster_partition_handling = pause_minority in rabbitmq.conf (three nodes or more), restart",
        ),
        runbook=runbook(NAME),
    )


def _smaller(view: View) -> str:
    """The nodes that more others were parted from than the rest: likely the smaller side."""
    most = max(len(node.partitions or ()) for node in view.nodes)
    few = [node.name for node in view.nodes if len(node.partitions or ()) == most]
    return f" (the smaller seems to be {some(sorted(few))})" if most > 1 and 2 * len(few) < len(view.nodes) else ""

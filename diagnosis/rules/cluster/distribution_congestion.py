"""distribution-congestion (E12): the link between two nodes carries about as much as a network can.

Told by the bytes that each node counts. Whether processes wait for a link (`busy_dist_port`) is in the log alone, and
the size of its buffer in no answer of the management API: a slower network is congested earlier, unseen from here.
Not injected in the lab: over loopback no link fills up. Source: https://www.rabbitmq.com/docs/inter-node-traffic
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.series import last, span
from diagnosis.words import lasting, size

NAME = "distribution-congestion"

_LONG = 60.0
"""Seconds after which it is no burst, such as replicas that catch up."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each pair of nodes, in the direction in which the link is full."""
    for node in sorted(view.nodes, key=lambda node: node.name):
        for link in sorted(node.links, key=lambda link: link.peer):
            if link.send_bytes is None:
                continue
            lately = _rate(view, node.name, link.peer, view.thresholds.early)
            if lately is None or lately < view.thresholds.cluster.link_busy:
                continue
            long = _rate(view, node.name, link.peer, _LONG)
            late = long is not None and long >= view.thresholds.cluster.link_busy
            yield _finding(view, node, link.peer, lately, late=late)


def _sent(node: Node, peer: str) -> int | None:
    return next((link.send_bytes for link in node.links if link.peer == peer), None)


def _rate(view: View, name: str, peer: str, seconds: float) -> float | None:
    """Bytes a second from one node to another over at least so long; None where that was not seen, or it was remade."""
    lately = last(view.node_history(name), seconds)
    counts = [_sent(seen.value, peer) for seen in lately]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or span(lately) < min(seconds, view.thresholds.early) or sorted(known) != known:
        return None
    if span(lately) < seconds:
        return None
    return (known[-1] - known[0]) / span(lately)


def _finding(view: View, node: Node, peer: str, rate: float, *, late: bool) -> FindingReport:
    busy = view.thresholds.cluster.link_busy
    patience = "" if late else f"; replicas that catch up look the same, warning after {lasting(_LONG)}"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="node", name=node.name, node=node.name),
        since=None,
        summary=f"Node {node.name!r} sends {size(rate)} a second to {peer!r}: their link is about full, and what waits "
        f"for it (replication, consumers at another node) is slow{patience}",
        cause="All that two nodes tell each other goes through one connection: replication of quorum queues, and every "
        "message whose publisher or consumer is connected to another node than its queue's.",
        evidence=(
            EvidenceReport(
                what=f"sent from {node.name!r} to {peer!r}",
                value=f"{size(rate)} a second",
                expected=f"below {size(busy)} a second",
                source="/api/nodes cluster_links send_bytes",
            ),
        ),
        next_steps=(
            (
                f"see whether it waits for the link: rabbitmq-diagnostics -n {node.name} log_tail -N 500 | "
                "grep -c busy_dist_port"
            ),
            "see what the network between them carries on each host: sar -n DEV 1 5",
            "connect clients to the node that leads their queue, so that messages cross the link less often",
            (
                "raise its buffer (default 128000 KiB) where the network has room: "
                "RABBITMQ_DISTRIBUTION_BUFFER_SIZE=192000 "
                "in rabbitmq-env.conf, restart"
            ),
        ),
        runbook=runbook(NAME),
    )

"""distribution-congestion (E12): the link between two nodes carries about as much as a 1 Gbit/s network can.

Detected from the bytes that each node counts. Only the log shows whether processes wait for a link (`busy_dist_port`),
and the management API does not report the buffer size. A slower network congests earlier, which this rule cannot
detect.
Not injected in the lab: over loopback no link fills up. Source: https://www.rabbitmq.com/docs/inter-node-traffic
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_subject
from diagnosis.series import last, span

NAME = "distribution-congestion"

_WARNING_SECONDS = 60.0
"""Seconds after which it is a warning; a burst, such as replicas that catch up, ends sooner."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each pair of nodes, in the direction in which the link is full."""
    busy = view.thresholds.cluster.link_busy
    for node in sorted(view.nodes, key=lambda node: node.name):
        for link in sorted(node.links, key=lambda link: link.peer):
            if link.send_bytes is None:
                continue
            recent = _rate(view, node.name, link.peer, view.thresholds.early)
            if recent is None or recent < busy:
                continue
            long = _rate(view, node.name, link.peer, _WARNING_SECONDS)
            lasting = long is not None and long >= busy
            yield _finding(view, node, link.peer, recent, lasting=lasting)


def _sent(node: Node, peer: str) -> int | None:
    return next((link.send_bytes for link in node.links if link.peer == peer), None)


def _rate(view: View, name: str, peer: str, seconds: float) -> float | None:
    """Return bytes per second from one node to another over at least `seconds`; None if too short or reconnected."""
    recent = last(view.node_history(name), seconds)
    counts = [_sent(seen.value, peer) for seen in recent]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or span(recent) < seconds or sorted(known) != known:
        return None
    return (known[-1] - known[0]) / span(recent)


def _finding(view: View, node: Node, peer: str, rate: float, *, lasting: bool) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=node_subject(node.name),
        facts={
            "peer": peer,
            "sent_bytes_rate": rate,
            "limit_bytes_rate": view.thresholds.cluster.link_busy,
            "warning_after_seconds": _WARNING_SECONDS,
        },
        certainty=Certainty.LIKELY if lasting else Certainty.EARLY,
        seen_seconds=_WARNING_SECONDS if lasting else view.thresholds.early,
        evidence=(
            Evidence(key="sent", value=rate, unit=Unit.BYTES, source=source("/api/nodes", "cluster_links.send_bytes")),
        ),
        involved=Involved(nodes=(node.name, peer)),
    )

"""hung-node (D16): the node accepts connections and answers none, over HTTP and AMQP: it is frozen, or its disk hangs.

Nothing can be read then, so the finding rests on how requests failed and on what probes see. Without probes it may be
the management API or the Prometheus endpoint alone, and the finding is a likely one. A hung node whose peers answer is
hung-peer.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Finding, Involved, Severity
from ackscope.records import ProbeOutcome
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_or_cluster
from diagnosis.rules.nodes._shared.unresponsive import (
    api_evidence,
    api_is_silent,
    errors,
    is_served,
    is_single_node,
    is_unanswered,
    is_unanswered_reading,
    polled_node,
    probe_evidence,
)

NAME = "hung-node"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the polled node if it no longer answers anything."""
    if not api_is_silent(view) or not any(is_unanswered_reading(error) for error in errors(view).values()):
        return
    age = view.age("health")
    if age is not None and age < view.thresholds.nodes.hung_for:
        return
    single = is_single_node(view)
    probes = [outcome for outcome in view.outcomes if _leads_to(outcome, polled_node(view), single=single)]
    unanswered = sorted(
        (o for o in probes if is_unanswered(o)), key=lambda o: (o.probe != "handshake", o.probe, o.stream)
    )
    # A probe that is served proves that the node works and only the management API hangs.
    served = any(is_served(outcome) and outcome.probe == "rtt" for outcome in probes)
    unprobed = not view.outcomes and age is not None and age >= view.thresholds.early
    if unprobed or (unanswered and not served):
        yield _finding(view, unanswered)


def _leads_to(outcome: ProbeOutcome, node: str | None, *, single: bool) -> bool:
    """Return whether a probe's address leads to the node; except for handshake, a probe's node is that of its queue."""
    return single or (outcome.probe == "handshake" and outcome.node in {"", node})


def _finding(view: View, unanswered: list[ProbeOutcome]) -> Finding:
    name = polled_node(view)
    readings, limit = view.window.readings("health"), view.thresholds.nodes.silent_for
    lasting = (view.age("health") or 0.0) >= limit
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if unanswered else Severity.WARNING if lasting else Severity.INFO,
        subject=node_or_cluster(view, name),
        since=readings[-1].at.iso() if readings else None,
        facts={
            "node": name,
            "accepts_connections": any(outcome.probe == "handshake" for outcome in unanswered),
            "silent_seconds": view.age("health"),
            "probed": bool(unanswered),
            "reads_only_metrics": view.reads_only_metrics,
            "warning_after_seconds": limit,
        },
        certainty=Certainty.CERTAIN if unanswered else Certainty.LIKELY if lasting else Certainty.EARLY,
        seen_seconds=view.age("health"),
        evidence=(*api_evidence(view), *probe_evidence(unanswered)),
        involved=Involved(nodes=(name,) if name else ()),
    )

"""metadata-minority (E03): too few nodes run for the metadata store (Khepri) to change anything.

Connected clients continue; a client that declares, binds or deletes waits 30 s and is then disconnected (541). The
broker's own health checks answer 200 meanwhile (seen on 4.3). Every cluster from 4.3 on uses Khepri, and before that
those with the feature flag `khepri_db`; Mnesia needs no majority.
Source: https://www.rabbitmq.com/docs/metadata-store/failure-recovery
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Involved, Severity, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster._shared.cluster_state import (
    KHEPRI_FLAG,
    running_nodes,
    stopped_nodes,
    uses_khepri,
)
from diagnosis.rules.nodes._shared.node_history import cluster_subject, trailing
from diagnosis.rules.probing._shared.outcomes import stream_name

NAME = "metadata-minority"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding where half of the nodes or more do not run, and the metadata store needs a majority."""
    if len(view.nodes) < 2 or not stopped_nodes(view) or 2 * len(running_nodes(view)) > len(view.nodes):
        return
    khepri = uses_khepri(view)
    if khepri is None:
        yield Inconclusive(rule=NAME, reason="store_unknown", facts={"flag": KHEPRI_FLAG})
    elif khepri:
        yield _finding(view)


def _finding(view: View) -> Finding:
    running, stopped = [node.name for node in running_nodes(view)], sorted(stopped_nodes(view))
    lost = trailing(
        view.window.readings("nodes"), lambda nodes: 2 * sum(bool(node.running) for node in nodes) <= len(nodes)
    )
    evidence = [Evidence(key="running", value=len(running), source=source("/api/nodes", "running"))]
    evidence += [
        Evidence(
            key="declare",
            value=step.reason,
            source=source(f"probe {stream_name(outcome)}", name),
            facts={"stream": stream_name(outcome), "step": name},
        )
        for outcome in view.outcomes
        for name, step in sorted(outcome.steps.items())
        if "declare" in name and step.reason
    ]
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=cluster_subject(view),
        since=lost[0].at.iso() if lost else None,
        facts={
            "nodes": len(view.nodes),
            "needed": len(view.nodes) // 2 + 1,
            "running_nodes": running,
            "stopped_nodes": stopped,
        },
        certainty=Certainty.CERTAIN,
        evidence=tuple(evidence[:4]),
        involved=Involved(nodes=tuple(stopped)),
    )

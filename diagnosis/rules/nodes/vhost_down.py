"""vhost-down (D13): a vhost does not run on a node: its queues there are unavailable, and no client can connect to it.

The broker restarts a vhost that fails once. A vhost whose message store cannot be read stays down.
Source: https://www.rabbitmq.com/docs/vhosts#failure-handling
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from ackscope.snapshot import HealthCheck
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import cluster_subject, failed_readings
from diagnosis.rules.nodes._shared.vhost_states import VHOST_CHECK, stopped_on
from diagnosis.series import span
from diagnosis.window import Series

NAME = "vhost-down"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every vhost by its state on running nodes; the health check fails sooner but does not name the vhost."""
    down = {vhost.name: nodes for vhost in view.vhosts if (nodes := stopped_on(view, vhost))}
    check = view.checks.get(VHOST_CHECK)
    failing = failed_readings(view, VHOST_CHECK)
    for name, nodes in sorted(down.items()):
        # The list is read less often than the check, which may already show that the failure is over.
        if check is None or check.ok is False:
            yield _finding(view, name, nodes, failing)
    listed = view.age("vhosts")
    # A list older than the failure does not show the vhost yet; the next one will.
    named_soon = listed is not None and span(failing) < listed <= view.thresholds.data_age
    if not down and not named_soon and span(failing) >= view.thresholds.nodes.vhost_down_for:
        yield _finding(view, None, (), failing)


def _finding(view: View, name: str | None, nodes: tuple[str, ...], failing: Series[tuple[HealthCheck, ...]]) -> Finding:
    limit = view.thresholds.nodes.vhost_down_for
    lasting = span(failing) >= limit
    node = nodes[0] if nodes else None
    check = view.checks.get(VHOST_CHECK)
    evidence = [
        Evidence(
            key="state", value="stopped", source=source("/api/vhosts", "cluster_state"), facts={"stopped_on": each}
        )
        for each in nodes[:3]
    ]
    if check is not None:
        value = check.reason or ("ok" if check.ok else "failed")
        evidence.append(Evidence(key="check", value=value, source=source(f"/api/health/checks/{VHOST_CHECK}")))
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if lasting else Severity.INFO,
        subject=cluster_subject(view) if name is None else Subject(kind="vhost", name=name, node=node),
        since=failing[0].at.iso() if failing else None,
        facts={"vhost": name, "nodes": list(nodes), "node": node, "critical_after_seconds": limit},
        certainty=Certainty.CERTAIN if lasting else Certainty.EARLY,
        seen_seconds=span(failing),
        evidence=tuple(evidence),
        involved=Involved(nodes=nodes),
    )

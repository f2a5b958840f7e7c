"""node-restarted (D11): a node was restarted while it was watched; this explains what was lost or disconnected."""

from collections.abc import Iterator
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_subject

NAME = "node-restarted"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its uptime, which falls only with a restart."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        if not node.running or node.uptime_seconds is None:
            continue
        restarts = _restarts(view, node.name)
        if restarts and (view.now.since(restarts[-1]) <= limits.restart_told or len(restarts) >= limits.restart_loop):
            yield _finding(view, node.name, node.uptime_seconds, restarts)


def _restarts(view: View, name: str) -> list[Instant]:
    """Return the time of the first reading after each restart within two hours, oldest first."""
    readings = {
        seen.at.mono: seen
        for seen in (*view.node_trend(name), *view.node_history(name))
        if seen.value.uptime_seconds is not None
    }
    ordered = [readings[moment] for moment in sorted(readings)]
    return [
        newer.at
        for older, newer in pairwise(ordered)
        if (newer.value.uptime_seconds or 0) < (older.value.uptime_seconds or 0)
    ]


def _finding(view: View, name: str, uptime: float, restarts: list[Instant]) -> Finding:
    looping = len(restarts) >= view.thresholds.nodes.restart_loop
    where = source("/api/nodes", "uptime")
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if looping else Severity.INFO,
        subject=node_subject(name),
        since=restarts[0 if looping else -1].iso(),
        facts={"uptime_seconds": uptime, "restarts": len(restarts)},
        certainty=Certainty.CERTAIN,
        evidence=(
            Evidence(key="uptime", value=uptime, unit=Unit.SECONDS, source=where),
            Evidence(key="restarts", value=len(restarts), source=where),
        ),
        involved=Involved(nodes=(name,)),
    )

"""node-restarted (D11): a node was started anew while it was watched; it explains what was lost or broken off then."""

from collections.abc import Iterator
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import of_node, on
from diagnosis.words import amount, lasting

NAME = "node-restarted"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its uptime, which falls with a restart only."""
    limits = view.thresholds.nodes
    for node in view.nodes:
        if not node.running or node.uptime_seconds is None:
            continue
        restarts = _restarts(view, node.name)
        if restarts and (view.now.since(restarts[-1]) <= limits.restart_told or len(restarts) >= limits.restart_loop):
            yield _finding(view, node.name, node.uptime_seconds, restarts)


def _restarts(view: View, name: str) -> list[Instant]:
    """The first reading after each restart within two hours, oldest first."""
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


def _finding(view: View, name: str, uptime: float, restarts: list[Instant]) -> FindingReport:
    looping = len(restarts) >= view.thresholds.nodes.restart_loop
    times = f"{amount(len(restarts), 'time')} within two hours, last " if len(restarts) > 1 else ""
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if looping else Severity.INFO,
        subject=of_node(name),
        since=restarts[0 if looping else -1].iso(),
        summary=f"Node {name!r} was restarted {times}{lasting(uptime)} ago; all connections to it broke off",
        cause=(
            "Its Erlang runtime was started anew: by hand, by an upgrade, by its supervisor after a crash, or with its "
            "machine. Transient messages and exclusive queues of that node are gone; unacknowledged messages were "
            "queued again and are delivered twice."
        ),
        evidence=(
            EvidenceReport(
                what="up for",
                value=lasting(uptime),
                expected="longer than it is watched",
                source="/api/nodes uptime",
            ),
            EvidenceReport(
                what="restarts seen", value=f"{len(restarts)}", expected="0", source="/api/nodes uptime, it fell"
            ),
        ),
        next_steps=(
            "ask whether somebody restarted it: deployment, upgrade, reboot",
            f"if nobody did, see why it ended: rabbitmq-diagnostics {on(name)}log_tail -N 500",
            "see whether the system killed it for its memory: journalctl -k | grep -i -E 'oom|killed process'",
            f"look for a crash dump beside the log: rabbitmq-diagnostics {on(name)}log_location",
            "see that all clients came back: rabbitmqctl list_connections user peer_host client_properties",
        ),
        runbook=runbook(NAME),
    )

"""node-down (E01): a node of the cluster does not run.

A node in maintenance is set aside: somebody took it out on purpose (node-draining watches that it comes back).
"""

from collections.abc import Iterator, Sequence

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.snapshot import Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.hung_peer import hangs
from diagnosis.rules.cluster.standing import absence, gone, listed, other, running
from diagnosis.series import span
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, some

NAME = "node-down"

_NEAR = 0.9
"""What a node had used of a limit when it was last seen, for a word about why it went."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each node that does not run."""
    for node in sorted(view.nodes, key=lambda node: node.name):
        if node.running is not False:
            continue
        if node.being_drained:
            yield SuppressedReport(rule=NAME, subject=_subject(node.name), because="it was put into maintenance before")
        elif node.name in gone(view):
            yield _finding(view, node.name, absence(view, node.name))


def _subject(name: str) -> Subject:
    return Subject(kind="node", name=name, node=name)


def _finding(view: View, name: str, away: Series[Node]) -> FindingReport:
    seconds, up, count = span(away), running(view), len(view.nodes)
    majority = 2 * len(up) > count
    late = seconds >= view.thresholds.cluster.node_down_for
    severity = Severity.CRITICAL if not majority else Severity.WARNING if late else Severity.INFO
    homed = [queue for queue in view.all_queues if queue.type == "classic" and queue.node == name]
    replicas = [queue for queue in view.all_queues if queue.members and name in queue.members]
    # A node that ends is for a moment said to run and tells nothing.
    before = [seen for seen in view.node_history(name)[: -len(away)] if seen.value.uptime_seconds is not None]
    frozen = any(outcome.node == name and hangs(outcome) for outcome in view.outcomes_of("handshake"))
    evidence = [
        EvidenceReport(what=f"node {name!r}", value="does not run", expected="running", source="/api/nodes running"),
        EvidenceReport(
            what="nodes that run",
            value=f"{len(up)} of {count}: {some([node.name for node in up])}",
            expected=f"{count}",
            source="/api/nodes running",
        ),
    ]
    if before:
        evidence.append(_before(before[-1].value))
    evidence.extend(
        EvidenceReport(what="handshake with it", value=step.reason, expected="open", source="probe: handshake")
        for outcome in view.outcomes_of("handshake")
        if outcome.node == name
        for _, step in sorted(outcome.steps.items())
        if step.reason is not None
    )
    if homed:
        evidence.append(
            EvidenceReport(
                what="classic queues that live there",
                value=f"{len(homed)}: {listed(homed)}",
                source="/api/queues node",
                expected="reachable",
            )
        )
    if replicas:
        evidence.append(
            EvidenceReport(
                what="queues and streams with a replica there",
                value=f"{len(replicas)}: {listed(replicas)}",
                source="/api/queues members",
                expected="a replica on each member",
            )
        )
    effects = []
    if homed:
        effects.append(f"{amount(len(homed), 'classic queue')} cannot be used until it is back")
    if replicas:
        effects.append(
            f"{amount(len(replicas), 'replicated queue')} {'has' if len(replicas) == 1 else 'have'} one less"
        )
    if not majority:
        effects.append("no majority of nodes is left")
    harmless = "" if severity is not Severity.INFO else f"; a restart looks the same, warning after {_limit(view)}"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=_subject(name),
        since=away[0].at.iso(),
        summary=f"Node {name!r} has not run for {lasting(seconds)} or more"
        + (f": {', '.join(effects)}" if effects else "")
        + harmless,
        cause=f"The other nodes do not see it run: it was stopped, it ended, or they cannot reach it.{_why(before)}"
        + (" Its port still takes connections, and nobody answers: it is frozen, and not ended." if frozen else ""),
        evidence=tuple(evidence),
        next_steps=_steps(view, name),
        runbook=runbook(NAME),
    )


def _limit(view: View) -> str:
    return lasting(view.thresholds.cluster.node_down_for)


def _used(node: Node) -> list[tuple[str, float]]:
    """Parts of its limits that a node had used, of those that end it or stop it."""
    pairs = (
        ("memory limit", node.mem_used, node.mem_limit),
        ("file descriptors", node.fd_used, node.fd_total),
        ("Erlang processes", node.proc_used, node.proc_total),
    )
    return [(what, used / limit) for what, used, limit in pairs if used is not None and limit]


def _before(node: Node) -> EvidenceReport:
    shares = ", ".join(f"{share:.0%} of its {what}" for what, share in _used(node))
    up = f"running for {lasting(node.uptime_seconds)}" if node.uptime_seconds is not None else "running"
    return EvidenceReport(
        what="when it was last seen", value=f"{up}; used {shares}" if shares else up, source="/api/nodes uptime, *_used"
    )


def _why(before: Sequence[Seen[Node]]) -> str:
    if not before:
        return ""
    last = before[-1].value
    near = [f"{share:.0%} of its {what}" for what, share in _used(last) if share >= _NEAR]
    if last.disk_free is not None and last.disk_free_limit and last.disk_free <= last.disk_free_limit:
        near.append("all of its disk")
    return f" Just before, it used {' and '.join(near)}." if near else ""


def _steps(view: View, name: str) -> tuple[str, ...]:
    helper = other(view, name)
    return (
        f"see who sees whom: rabbitmq-diagnostics -n {helper} cluster_status",
        (
            "on its host, see whether it runs and why it ended: systemctl status rabbitmq-server; "
            "journalctl -u rabbitmq-server -n 100; dmesg | grep -i 'killed process'"
        ),
        "start it: systemctl start rabbitmq-server",
        f"where only the broker is stopped and its Erlang answers: rabbitmqctl -n {name} start_app",
        "do not delete or declare again the classic queues that live there: their messages come back with the node",
        (
            f"only if it is gone for good (its classic queues are lost then): rabbitmq-queues -n {helper} shrink "
            f"{name}; "
            f"rabbitmqctl -n {helper} forget_cluster_node {name}"
        ),
    )

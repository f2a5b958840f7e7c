"""fd-exhaustion (D06): a node runs out of file handles or sockets.

3.x keeps some back: at its own limit of sockets new clients get a TCP connection and no AMQP one, an alarm is raised,
and the rest goes on. 4.x keeps none back and raises no alarm: the last handle ends the node (seen on 4.0 and 4.3).
Source: https://www.rabbitmq.com/docs/networking#open-file-handle-limit
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection, Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes.seen import lasting, of_node, on, since_start
from diagnosis.series import last, span
from diagnosis.window import Series
from diagnosis.words import amount, some

NAME = "fd-exhaustion"
_RESOURCE = "file_descriptor_limit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its file handles, and one of 3.x by its sockets and its alarm too."""
    alarmed = {alarm.node for alarm in view.alarms if alarm.resource == _RESOURCE}
    limits = view.thresholds.nodes
    for node in view.nodes:
        use = _use(node)
        if node.running is not True:
            continue
        if node.name in alarmed or _sockets(node) >= limits.sockets_critical:
            yield _finding(view, node, Severity.CRITICAL, since_start(view.node_history(node.name))[-1:])
        elif use > limits.fd_near:
            near = lasting(since_start(view.node_history(node.name)), lambda seen: _use(seen) > limits.fd_near)
            # Not longer: a 4.x node that runs out ends within seconds.
            if span(near) >= view.thresholds.interval:
                critical = use > limits.fd_critical and all(
                    _use(seen.value) > limits.fd_critical for seen in last(near, view.thresholds.interval)
                )
                yield _finding(view, node, Severity.CRITICAL if critical else Severity.WARNING, near)


def _use(node: Node) -> float:
    return node.fd_used / node.fd_total if node.fd_used is not None and node.fd_total else 0.0


def _sockets(node: Node) -> float:
    used, total = node.sockets_used, node.sockets_total
    return used / total if used is not None and total else 0.0


def _finding(view: View, node: Node, severity: Severity, near: Series[Node]) -> FindingReport:
    old = view.version is not None and view.version < (4, 0)
    evidence = []
    if node.fd_used is not None and node.fd_total:
        evidence.append(
            EvidenceReport(
                what="file handles in use",
                value=f"{node.fd_used} of {node.fd_total} ({_use(node):.0%})",
                expected=f"below {view.thresholds.nodes.fd_near:.0%}",
                source="/api/nodes fd_used, fd_total",
            )
        )
    full = _sockets(node) >= view.thresholds.nodes.sockets_critical
    if node.sockets_used is not None and node.sockets_total:
        evidence.append(
            EvidenceReport(
                what="sockets in use",
                value=f"{node.sockets_used} of {node.sockets_total}",
                expected="room for new clients",
                source="/api/nodes sockets_used, sockets_total",
            )
        )
    evidence += _holders(view, node)
    here = sum(connection.node == node.name for connection in view.connections)
    if old:
        what = "new clients connect and are not served" if full else "soon no new client is served"
        cause = (
            "The node has hardly a file handle or socket left. RabbitMQ 3.x keeps some back for itself: clients that "
            "are connected go on, new ones get a TCP connection and no answer."
        )
    else:
        what = "when the last one is gone, the node ends"
        cause = (
            "The node has hardly a file handle left. Since 4.0 it keeps none back and raises no alarm: with the last "
            "one the node itself ends, and takes all its connections along."
        )
    most = _largest_holder(view, node)
    if most is not None and most[1] > here / 2:
        cause += f" Most of its connections are of {most[0]!r}."
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=of_node(node.name),
        since=near[0].at.iso() if near else None,
        summary=(
            f"Node {node.name!r} runs out of file handles: {_summed(node, full=full)}, "
            f"{amount(here, 'connection')}; {what}"
        ),
        cause=cause,
        evidence=tuple(evidence),
        next_steps=_steps(node.name),
        runbook=runbook(NAME),
    )


def _summed(node: Node, *, full: bool) -> str:
    if full:
        return f"{node.sockets_used} of {node.sockets_total} sockets"
    return f"{node.fd_used} of {node.fd_total} ({_use(node):.0%})"


def _largest_holder(view: View, node: Node) -> tuple[str, int] | None:
    return next(iter(_by_client(view, node)), None)


def _by_client(view: View, node: Node) -> list[tuple[str, int]]:
    """Who holds connections to a node, most first: by application, or where each has a name of its own, by user."""
    here = [connection for connection in view.connections if connection.node == node.name]
    by_name = Counter(_place(each, each.client_name or each.client_product or each.user) for each in here)
    by_user = Counter(_place(each, f"user {each.user}" if each.user else None) for each in here)
    counts = by_name if 2 * max(by_name.values(), default=0) > len(here) else by_user
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _place(connection: Connection, name: str | None) -> str:
    return f"{name or 'unknown'}" + (f" at {connection.peer_host}" if connection.peer_host else "")


def _holders(view: View, node: Node) -> list[EvidenceReport]:
    told = [f"{name}: {amount(number, 'connection')}" for name, number in _by_client(view, node)]
    if not told:
        return []
    return [
        EvidenceReport(
            what="who holds connections to it", value=some(told), source="/api/connections client_properties"
        )
    ]


def _steps(name: str) -> tuple[str, ...]:
    target = on(name)
    raised = "LimitNOFILE=500000 in the systemd unit, or --ulimit nofile of the container"
    return (
        f"see who holds them: rabbitmqctl {target}list_connections user peer_host channels client_properties",
        "close what leaks: stop or restart that application; its connections go with it",
        f"close all of one user: rabbitmqctl {target}close_all_user_connections USER 'too many connections'",
        f"then raise the limit: {raised}, and restart the node when it is calm",
        "later: limit what one user may open: rabbitmqctl set_user_limits USER '{\"max-connections\": 500}'",
    )

"""fd-exhaustion (D06): a node runs out of file descriptors or sockets.

3.x reserves some: at its own socket limit new clients get a TCP connection but no AMQP connection, an alarm is raised,
and everything else continues. 4.x reserves none and raises no alarm: with the last descriptor the node stops (seen on
4.0 and 4.3). Source: https://www.rabbitmq.com/docs/networking#open-file-handle-limit
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, source
from ackscope.snapshot import Connection, Node
from diagnosis.contract import RuleResult, View
from diagnosis.rules.nodes._shared.node_history import node_subject, since_start, trailing
from diagnosis.rules.nodes._shared.resource_alarm import nodes_in_alarm
from diagnosis.series import last, span
from diagnosis.window import Series

NAME = "fd-exhaustion"


@dataclass(frozen=True, slots=True, order=True)
class _Holder:
    """A client that holds connections: an application by its name, or a user, and its host."""

    client: str | None
    user: str | None
    host: str | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every running node by its file descriptors, and one of 3.x by its sockets and its alarm too."""
    alarmed = nodes_in_alarm(view, "file_descriptor_limit")
    limits = view.thresholds.nodes
    for node in view.nodes:
        use = _use(node)
        if node.running is not True:
            continue
        if node.name in alarmed or _sockets(node) >= limits.sockets_critical:
            yield _finding(view, node, Severity.CRITICAL, since_start(view.node_history(node.name))[-1:])
        elif use > limits.fd_near:
            near = trailing(since_start(view.node_history(node.name)), lambda seen: _use(seen) > limits.fd_near)
            # One interval is enough: a 4.x node that runs out of descriptors stops within seconds.
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


def _finding(view: View, node: Node, severity: Severity, near: Series[Node]) -> Finding:
    limits = view.thresholds.nodes
    here = [connection for connection in view.connections if connection.node == node.name]
    holders = [_holder_facts(holder, count) for holder, count in _holders(here)]
    evidence = []
    if node.fd_used is not None and node.fd_total:
        evidence.append(
            Evidence(
                key="descriptors",
                value=node.fd_used,
                source=source("/api/nodes", "fd_used", "fd_total"),
                facts={"near_share": limits.fd_near},
            )
        )
    if node.sockets_used is not None and node.sockets_total:
        evidence.append(
            Evidence(
                key="sockets", value=node.sockets_used, source=source("/api/nodes", "sockets_used", "sockets_total")
            )
        )
    if holders:
        evidence.append(Evidence(key="holders", source=source("/api/connections", "client_properties", "user")))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=node_subject(node.name),
        since=near[0].at.iso() if near else None,
        facts={
            "descriptors_used": node.fd_used,
            "descriptors_limit": node.fd_total,
            "used_share": _use(node),
            "sockets_used": node.sockets_used,
            "sockets_limit": node.sockets_total,
            "sockets_full": _sockets(node) >= limits.sockets_critical,
            "connections": len(here),
            "holders": holders[:3],
            "holder_count": len(holders),
            # 4.x reserves no descriptor for itself.
            "reserves_descriptors": view.version is not None and view.version < (4, 0),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=span(near),
        evidence=tuple(evidence),
        involved=Involved(
            nodes=(node.name,), clients=tuple(str(each["client"]) for each in holders[:3] if each["client"])
        ),
    )


def _holders(here: list[Connection]) -> list[tuple[_Holder, int]]:
    """Return who holds connections, most first: by application, or by user if every connection has its own name."""
    by_name = Counter(_by_name(each) for each in here)
    by_user = Counter(_Holder(None, each.user, each.peer_host) for each in here)
    counts = by_name if 2 * max(by_name.values(), default=0) > len(here) else by_user
    return sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))


def _by_name(each: Connection) -> _Holder:
    return _Holder(each.client_name, None if each.client_name else each.user, each.peer_host)


def _holder_facts(holder: _Holder, count: int) -> dict[str, Fact]:
    return {"client": holder.client, "user": holder.user, "host": holder.host, "connections": count}

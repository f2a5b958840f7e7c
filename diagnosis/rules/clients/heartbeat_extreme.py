"""heartbeat-extreme (X07): connections without heartbeats, or with heartbeats that are too long or too short.

Without heartbeats, a client that disappeared stays "connected" for hours, with its unacknowledged messages and its
exclusive queues. With heartbeats of a few seconds, a busy client looks dead.
Source: https://www.rabbitmq.com/docs/heartbeats
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, source
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import age_seconds, involved_connections

NAME = "heartbeat-extreme"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster: heartbeats are chosen by clients, and nothing is broken now."""
    limits = view.thresholds.clients
    found = [
        connection
        for connection in view.connections
        if connection.heartbeat is not None
        and (connection.protocol or "").startswith("AMQP")
        and not limits.heartbeat_least <= connection.heartbeat <= limits.heartbeat_most
        and age_seconds(view, connection) >= view.thresholds.early
    ]
    if found:
        yield _finding(view, found)


def _finding(view: View, found: list[Connection]) -> Finding:
    limits = view.thresholds.clients
    clients = sorted({(client_name(each) or each.name, each.peer_host or "", each.heartbeat or 0) for each in found})
    listed: list[Fact] = [
        {"client": client, "host": host, "heartbeat_seconds": heartbeat} for client, host, heartbeat in clients
    ]
    off = sum(each.heartbeat == 0 for each in found)
    too_long = sum((each.heartbeat or 0) > limits.heartbeat_most for each in found)
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={
            "connections": len(found),
            "off": off,
            "too_long": too_long,
            "too_short": len(found) - off - too_long,
            "clients": listed,
            "min_heartbeat_seconds": limits.heartbeat_least,
            "max_heartbeat_seconds": limits.heartbeat_most,
        },
        evidence=(Evidence(key="heartbeats", source=source("/api/connections", "timeout")),),
        involved=involved_connections(found),
        certainty=Certainty.CERTAIN,
    )

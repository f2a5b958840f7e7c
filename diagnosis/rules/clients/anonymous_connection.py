"""anonymous-connection (X12): connections whose client does not say which application it is.

Harmless until something goes wrong: then a finding, a log line or a graph shows an address and a port, and nobody knows
which application it is.
Source: https://www.rabbitmq.com/docs/connections#client-provided-names
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, source
from ackscope.protocols import AMQP10, native_protocol
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.connections import age_seconds, involved_connections

NAME = "anonymous-connection"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for the cluster."""
    nameless = [
        connection
        for connection in view.connections
        if not connection.client_name
        and (connection.protocol or "").startswith("AMQP")
        # 4.0 does not report the name of an AMQP 1.0 client.
        and (connection.container_id or native_protocol(connection.protocol) != AMQP10)
        and age_seconds(view, connection) >= view.thresholds.early
    ]
    if nameless:
        yield _finding(view, nameless)


def _finding(view: View, nameless: list[Connection]) -> Finding:
    origins = Counter((each.user or "", each.peer_host or "", each.client_product or "") for each in nameless)
    listed: list[Fact] = [
        {"user": user or None, "host": host or None, "library": library or None, "connections": number}
        for (user, host, library), number in sorted(origins.items(), key=lambda item: (-item[1], item[0]))
    ]
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        facts={"nameless": len(nameless), "connections": len(view.connections), "origins": listed},
        evidence=(
            Evidence(
                key="origins",
                value=len(nameless),
                source=source("/api/connections", "client_properties.connection_name"),
            ),
        ),
        involved=involved_connections(nameless),
        certainty=Certainty.CERTAIN,
    )

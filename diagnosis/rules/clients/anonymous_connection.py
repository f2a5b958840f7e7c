"""anonymous-connection (X12): connections whose client does not say which application it is.

Harmless until something is wrong: then a finding, a log line or a graph names an address and a port, and nobody knows
whose they are.
Source: https://www.rabbitmq.com/docs/connections#client-provided-names
"""

from collections import Counter
from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.ages import age
from diagnosis.words import amount, some

NAME = "anonymous-connection"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for the cluster."""
    nameless = [
        connection
        for connection in view.connections
        if not connection.client_name
        and (connection.protocol or "").startswith("AMQP")
        and age(view, connection) >= view.thresholds.early
    ]
    if nameless:
        yield _finding(view, nameless)


def _finding(view: View, nameless: list[Connection]) -> FindingReport:
    places = Counter(
        f"user {each.user!r} at {each.peer_host or 'an unknown host'} ({each.client_product or 'unknown library'})"
        for each in nameless
    )
    top = sorted(places.items(), key=lambda item: (-item[1], item[0]))
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=(
            f"{len(nameless)} of {amount(len(view.connections), 'connection')} without a name: "
            "when one of them does harm, it cannot be told whose it is"
        ),
        cause="Their clients set no connection name (client property `connection_name`).",
        evidence=(
            EvidenceReport(
                what="connections without a name",
                value=some((f"{number} of {place}" for place, number in top), 5),
                expected="a name for each application",
                source="/api/connections client_properties.connection_name",
            ),
        ),
        next_steps=(
            "see them: rabbitmqctl list_connections name user peer_host client_properties",
            "give each application's connections a name, with the instance in it, such as 'billing-7'",
            "a user of its own for each application helps as well",
        ),
        runbook=runbook(NAME),
    )

"""heartbeat-extreme (X07): connections without heartbeats, or with ones that are too far apart or too close.

Without, a client that vanished stays "connected" for hours, with its unacknowledged messages and its exclusive queues;
with ones of a few seconds a busy client is taken for dead.
Source: https://www.rabbitmq.com/docs/heartbeats
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.ages import age
from diagnosis.words import amount, client, some

NAME = "heartbeat-extreme"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for the cluster: these are choices of clients, and no fault of today."""
    limits = view.thresholds.clients
    suspects = [
        connection
        for connection in view.connections
        if connection.heartbeat is not None
        and (connection.protocol or "").startswith("AMQP")
        and not limits.heartbeat_least <= connection.heartbeat <= limits.heartbeat_most
        and age(view, connection) >= view.thresholds.early
    ]
    if suspects:
        yield _finding(view, suspects)


def _told(name: str, host: str, heartbeat: int) -> str:
    return f"{name!r} at {host}: " + (f"{heartbeat} s" if heartbeat else "off")


def _finding(view: View, suspects: list[Connection]) -> FindingReport:
    limits = view.thresholds.clients
    named = sorted({(client(each, each.name), each.peer_host or "", each.heartbeat or 0) for each in suspects})
    without = sum(each.heartbeat == 0 for each in suspects)
    late = sum((each.heartbeat or 0) > limits.heartbeat_most for each in suspects)
    early = len(suspects) - without - late
    kinds = {"without any": without, "too far apart": late, "too close": early}
    told = ", ".join(f"{number} {what}" for what, number in kinds.items() if number)
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"{amount(len(suspects), 'connection')} with heartbeats out of the usual ({told})",
        cause=(
            "A client that vanishes is noticed after two heartbeats: without, its messages and queues stay held for "
            "hours; with ones of a few seconds a pause of a busy client ends its connection."
        ),
        evidence=(
            EvidenceReport(
                what="connections",
                value=some(
                    (f"{name!r} at {host}: {'off' if beat == 0 else f'{beat} s'}" for name, host, beat in named), 5
                ),
                expected=f"{limits.heartbeat_least} to {limits.heartbeat_most} s; 10 to 30 s is good",
                source="/api/connections timeout",
            ),
        ),
        next_steps=(
            "see them: rabbitmqctl list_connections user peer_host timeout client_properties",
            "set the heartbeat of these clients to 10 to 30 s (of client and broker the lower one counts; 0 is off)",
            "behind a load balancer: at most half of its idle timeout",
        ),
        runbook=runbook(NAME),
    )

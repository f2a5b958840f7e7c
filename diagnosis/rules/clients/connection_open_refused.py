"""connection-open-refused: clients log in, are refused when they open their virtual host, and retry.

Such a connection is in no list. Only the counters of logins and of opened connections show it.
Where a virtual host was down meanwhile and runs again, that was the cause, and the settings of the clients are right.
Source: https://www.rabbitmq.com/docs/access-control, `/api/auth/attempts/<node>`; seen on 3.10.8 and 4.3.6.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Subject, source
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.logins import RefusedOpenings, refused_openings
from diagnosis.rules.nodes._shared.vhost_states import VHostOutage, outage_within

NAME = "connection-open-refused"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare successful logins with opened connections, in the whole cluster."""
    limits = view.thresholds.clients
    refused = refused_openings(view, limits.auth_within)
    if refused is not None and refused.count >= limits.auth_failures:
        yield _finding(view, refused)


def _finding(view: View, refused: RefusedOpenings) -> Finding:
    # A client that goes on after all virtual hosts run again has another cause.
    outage = None if refused.continues else outage_within(view, refused.since)
    many = view.thresholds.clients.auth_failures_many
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if refused.count > many and refused.continues else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=refused.since.iso(),
        facts={
            "refused": refused.count,
            "logins": refused.logins,
            "refused_rate": refused.count / refused.seconds,
            "continues": refused.continues,
            "interval_seconds": refused.seconds,
            "warning_above_refused": many,
            "outage": _outage_facts(outage),
        },
        evidence=(
            Evidence(
                key="refused",
                value=refused.count,
                source=source("/api/auth/attempts/<node>", "auth_attempts_succeeded")
                + source("/api/overview", "churn_rates.connection_created", "churn_rates.connection_closed"),
            ),
        ),
        certainty=Certainty.CERTAIN,
        seen_seconds=refused.seconds,
    )


def _outage_facts(outage: VHostOutage | None) -> Fact:
    if outage is None:
        return None
    nodes = list[Fact](outage.nodes)
    return {"vhost": outage.name, "nodes": nodes, "node": min(outage.nodes, default=None), "seconds": outage.seconds}

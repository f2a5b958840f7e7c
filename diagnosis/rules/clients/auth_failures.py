"""auth-failures (X06): clients cannot log in, and retry.

Source: https://www.rabbitmq.com/docs/access-control, `/api/auth/attempts/<node>` (https://www.rabbitmq.com/docs/management).
"""

from collections.abc import Hashable, Iterable, Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, source
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.relations import ANYWHERE
from diagnosis.rules.clients._shared.logins import AMQP, RefusedLogins, refused_logins

NAME = "auth-failures"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every protocol of every node by the logins that were refused recently."""
    limits = view.thresholds.clients
    for logins in refused_logins(view, limits.auth_within):
        # The management API counts the logins of the exporter too; those that fail show as a failed poll.
        if logins.protocol != "http" and logins.failed >= limits.auth_failures:
            yield _finding(view, logins)


def _finding(view: View, logins: RefusedLogins) -> Finding:
    limits = view.thresholds.clients
    share = logins.failed / max(logins.total, logins.failed, 1)
    many = logins.failed > limits.auth_failures_many and share > limits.auth_share and logins.recent > 0
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if many else Severity.INFO,
        subject=Subject(kind="node", name=logins.node, node=logins.node),
        since=logins.since.iso(),
        facts={
            "node": logins.node,
            "protocol": logins.protocol,
            "is_amqp": logins.protocol in AMQP,
            "failed": logins.failed,
            "logins": logins.total,
            "failed_share": share,
            "failed_recently": logins.recent,
            "interval_seconds": logins.seconds,
            "warning_share": limits.auth_share,
            "warning_above_failed": limits.auth_failures_many,
        },
        evidence=(
            Evidence(
                key="refused",
                value=logins.failed,
                source=source(f"/api/auth/attempts/{logins.node}", "auth_attempts_failed"),
            ),
        ),
        involved=Involved(nodes=(logins.node,)),
        certainty=Certainty.CERTAIN,
        seen_seconds=logins.seconds,
    )


def _unlisted(view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.subject.kind == "connection" else ANYWHERE.of_other(view, finding)


UNLISTED_CLIENTS = Relation(ANYWHERE.of_cause, _unlisted)
"""The consequence names no client: one that the broker lists has logged in."""

"""auth-failures (X06): clients cannot log in, and try again.

Source: https://www.rabbitmq.com/docs/access-control, `/api/auth/attempts/<node>` (https://www.rabbitmq.com/docs/management).
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.refusals import AMQP, Logins, logins
from diagnosis.words import amount, lasting

NAME = "auth-failures"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every protocol of every node by the logins that were refused lately."""
    limits = view.thresholds.clients
    for found in logins(view, limits.auth_within):
        # The management API counts our own logins too: those that fail are told as a reading that fails.
        if found.protocol != "http" and found.failed >= limits.auth_failures:
            yield _finding(view, found)


def _finding(view: View, found: Logins) -> FindingReport:
    limits = view.thresholds.clients
    share = found.failed / max(found.total, found.failed, 1)
    grave = found.failed > limits.auth_failures_many and share > limits.auth_share and found.lately > 0
    calm = "" if grave else f"; a scanner looks the same; warning from {limits.auth_share:.0%} of all logins on"
    node = quote(found.node)
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if grave else Severity.INFO,
        subject=Subject(kind="node", name=found.node, node=found.node),
        since=found.since.iso(),
        summary=(
            f"{amount(found.failed, 'login')} over {found.protocol} refused at {found.node} "
            f"in {lasting(found.seconds)}: {share:.0%} of all there{calm}"
        ),
        cause=(
            "Some client has a wrong user or password, or a user that was deleted, and tries again."
            if found.protocol in AMQP
            else f"Some client of {found.protocol} has wrong credentials, and tries again."
        ),
        evidence=(
            EvidenceReport(
                what="logins refused",
                value=f"{found.failed} of {found.total} in {lasting(found.seconds)}, {found.lately} of them lately",
                expected="0",
                source=f"/api/auth/attempts/{found.node} auth_attempts_failed ({found.protocol})",
            ),
        ),
        next_steps=(
            f"see who, on {found.node}: grep -hi -A1 'refused: user' /var/log/rabbitmq/*.log | tail -6",
            f"try its credentials: rabbitmqctl -n {node} authenticate_user USER PASSWORD",
            f"give it the right ones; or set them: rabbitmqctl -n {node} change_password USER PASSWORD",
            "from everywhere and with many names: somebody is guessing; close the port to the outside",
        ),
        runbook=runbook(NAME),
    )

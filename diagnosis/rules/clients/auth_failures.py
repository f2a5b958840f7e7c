"""auth-failures (X06): clients cannot log in, and retry.

The broker does not report who was refused. But where a queue lost its last consumer after refusals began, and has none
since, that consumer is probably among those who cannot come back: its password or user was changed while it was
connected, and a connection that is open needs none. So is a publisher that left when they began.

A refused login opens no connection, so connections that open and close in a loop are those of other clients.

Refusals at a steady rate are those of a client that tries again and again; a share of all logins says little then.
Source: https://www.rabbitmq.com/docs/access-control, `/api/auth/attempts/<node>` (https://www.rabbitmq.com/docs/management).
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, QueueRef, Severity, Subject, source
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.clients._shared.logins import AMQP, RefusedLogins, refused_logins
from diagnosis.rules.clients._shared.shut_out import shut_out
from diagnosis.rules.queues._shared.queue import MAX_NAMED

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
    out = shut_out(view, logins)
    many = logins.failed > limits.auth_failures_many and share > limits.auth_share and logins.recent > 0
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if many or out.waiting or out.silent else Severity.INFO,
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
            "shut_out": [queue_facts(queue) for queue in out.waiting[:MAX_NAMED]],
            "waiting": sum(queue.messages_ready or 0 for queue in out.waiting),
            "publishers": out.publisher_facts(MAX_NAMED),
            "silent": [queue_facts(queue) for queue in out.silent[:MAX_NAMED]],
            "interval_each": logins.every,
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
        involved=Involved(
            nodes=(logins.node,),
            queues=tuple(dict.fromkeys(QueueRef(*queue.key) for queue in (*out.waiting, *out.silent))),
            clients=tuple(dict.fromkeys(name for each in out.publishers if (name := each.connection.client_name))),
        ),
        certainty=Certainty.CERTAIN,
        seen_seconds=logins.seconds,
    )

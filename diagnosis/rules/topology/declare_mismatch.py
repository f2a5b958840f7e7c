"""declare-mismatch (G01): an application declares a queue otherwise than it is, is refused, and tries again.

The broker answers 406 PRECONDITION_FAILED "inequivalent arg ..." and closes the channel; the application never comes
to consume or publish. Declarations count in the cluster's churn also when they are refused, so that a loop of one
declaration a cycle which the broker ends with an error is this, or a locked exclusive queue (405), which has a rule of
its own. A client that ends its whole connection at the error shows as connection-churn.
Source: https://www.rabbitmq.com/docs/queues#property-equivalence
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity
from ackscope.reports import FindingReport, runbook
from diagnosis.closing import Closing, closings
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.loop_report import CLEAR, evidence, pace, read_log, who
from diagnosis.rules.topology.exclusive_name_locked import locked
from diagnosis.words import lasting

NAME = "declare-mismatch"

SHORTEST = 100
"""Bytes: "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is
'true'" has 112; a longer name makes it longer."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which a queue is declared each time and the broker closes the channel with an error."""
    for closing in closings(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        declares = closing.alone and closing.declares >= CLEAR
        if declares and closing.error >= SHORTEST and not locked(view, closing):
            yield _finding(view, closing)


def _finding(view: View, closing: Closing) -> FindingReport:
    limit = view.thresholds.clients.refused_for
    late = closing.lasts >= limit
    later = "" if late else f"; a rolling deployment looks the same; warning after {lasting(limit)}"
    vhost = quote(closing.connection.vhost or "/")
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=closing.subject,
        since=closing.since.iso(),
        summary=(
            f"{who(closing)} declares a queue and is refused, {pace(closing.rate)}, for {lasting(closing.lasts)}: "
            f"it does not come to its work{later}"
        ),
        cause=(
            "The queue exists with other properties than the application declares (406 PRECONDITION_FAILED, "
            "'inequivalent arg'), and the broker closes the channel each time."
        ),
        evidence=tuple(evidence(closing, "channel")),
        next_steps=(
            read_log(closing),
            "which property of which queue: grep -h 'inequivalent arg' /var/log/rabbitmq/*.log | tail -3",
            f"what it is now: rabbitmqctl list_queues -p {vhost} name type durable auto_delete arguments policy",
            "give the application the properties that the queue has; or delete the queue, once it is empty and unused",
            "later: set TTL, lengths and dead-lettering by policy, which can be changed without declaring anew",
        ),
        runbook=runbook(NAME),
    )

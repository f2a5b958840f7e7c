"""declare-mismatch (G01): an application declares a queue with other properties than it has, is refused, and retries.

The broker answers 406 PRECONDITION_FAILED "inequivalent arg ..." and closes the channel; the application never gets to
consume or publish. The cluster's churn counts refused declarations too. So a loop with one declaration per
cycle that the broker ends with an error is this, unless the error is that of a locked exclusive queue (405) or of a
limit of queues (406), which have rules of their own. A client that closes its whole connection at the error shows as
connection-churn.
Source: https://www.rabbitmq.com/docs/queues#property-equivalence
"""

from collections.abc import Iterator

from ackscope.findings import Finding, Severity
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.loops import MIN_PER_CYCLE, loop_evidence, loop_facts, loop_involved
from diagnosis.rules.clients._shared.queue_limits import refused_by_limit
from diagnosis.rules.queues._shared.queue import certainty
from diagnosis.rules.topology.exclusive_name_locked import locked_queues

NAME = "declare-mismatch"

MIN_TEXT_BYTES = 100
"""Bytes: "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is
'true'" has 112; a longer name makes it longer."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which a queue is declared each time and the broker closes the channel with an error."""
    for closing in churn_loops(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        declares = closing.alone and closing.declares >= MIN_PER_CYCLE
        known = locked_queues(view, closing) or refused_by_limit(view, closing)
        if declares and closing.error >= MIN_TEXT_BYTES and not known:
            yield _finding(view, closing)


def _finding(view: View, closing: ChurnLoop) -> Finding:
    limit = view.thresholds.clients.refused_for
    severity = Severity.WARNING if closing.lasts >= limit else Severity.INFO
    return Finding(
        rule=NAME,
        severity=severity,
        subject=closing.subject,
        since=closing.since.iso(),
        facts={**loop_facts(closing), "warning_after_seconds": limit},
        certainty=certainty(severity, closing.lasts, limit),
        seen_seconds=closing.lasts,
        evidence=tuple(loop_evidence(closing, "channel")),
        involved=loop_involved(closing),
    )

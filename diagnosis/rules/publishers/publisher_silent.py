"""publisher-silent (A15): nobody publishes to a queue to which somebody always does.

How often is known to the owner of the queue, who names it in `diagnosis.publishers.silent_queues`; or to its past: a
queue that gets messages in nearly every minute of this hour of the week is watched without being named (usual_pace).
"""

import re
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers.usual_pace import against_usual
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series
from diagnosis.words import amount, client, lasting, some

NAME = "publisher-silent"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each queue that settings name, or that is busy as a rule, and that got nothing for long."""
    patterns = [re.compile(pattern) for pattern in view.thresholds.publishers.silent_queues]
    yield from against_usual(view, patterns)
    if not patterns:
        return
    for queue in view.queues:
        if not any(pattern.search(queue.name) for pattern in patterns) or not queue.stats.publish:
            # One that never got a message has no usual.
            continue
        silent = stretch(view.history(queue), lambda older, newer: delta((older, newer), "publish") == 0)
        if len(silent) > 1 and span(silent) >= view.limits(queue).publishers.silent_for:
            yield _finding(view, queue, silent)


def _finding(view: View, queue: Queue, silent: Series[Queue]) -> FindingReport:
    seconds = lasting(span(silent))
    others = sorted({repr(client(each, each.name)) for each in view.connections if each.vhost == queue.vhost})
    there = (
        f"{amount(len(others), 'application')} of its vhost {'is' if len(others) == 1 else 'are'} connected: "
        f"{some(others)}"
        if others
        else "no application of its vhost is connected"
    )
    bound = f"rabbitmqctl list_bindings -p {quote(queue.vhost)} source_name destination_name routing_key"
    usual = lasting(view.limits(queue).publishers.silent_for)
    alarm = "an alarm is in force, which holds publishers back; " if view.alarms else ""
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=silent[0].at.iso(),
        summary=f"Nobody published to queue {queue.name!r} ({queue.vhost!r}) for {seconds} or more; {there}",
        cause=(
            f"The broker cannot tell: {alarm}its publisher stopped, lost its connection or credentials, or a binding "
            "to the queue is gone."
        ),
        evidence=(
            EvidenceReport(
                what="published to it",
                value=f"0 messages in {seconds}; {queue.stats.publish} since it was declared",
                expected=f"some in {usual} (diagnosis.publishers.silent_for)",
                source="/api/queues message_stats.publish",
            ),
        ),
        next_steps=(
            "read the log of the application that publishes to it",
            f"see that it is bound as it was: {bound} | grep -F -- {quote(queue.name)}",
            "see who is connected: rabbitmqctl list_connections vhost user client_properties state",
        ),
        runbook=runbook(NAME),
    )

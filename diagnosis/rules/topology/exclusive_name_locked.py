"""exclusive-name-locked (G07): an application cannot declare its exclusive queue: another connection owns the name.

The broker answers 405 RESOURCE_LOCKED and closes the channel. The owner is often the previous connection of the same
application, which the broker considers alive until it misses heartbeats. Which queue it is follows from the length of
the broker's error text (see `diagnosis.churn_loops`).
Source: https://www.rabbitmq.com/docs/queues#exclusive-queues
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Evidence, Finding, Severity, Subject, source
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.rules.clients._shared.loops import loop_evidence, loop_facts, loop_involved
from diagnosis.rules.queues._shared.queue import certainty

NAME = "exclusive-name-locked"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which the broker's error is as long as that about a locked queue."""
    for closing in churn_loops(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        locked = locked_queues(view, closing)
        if locked:
            yield _finding(view, closing, locked)


def locked_queues(view: View, closing: ChurnLoop) -> tuple[Queue, ...]:
    """Return the exclusive queues of the loop's virtual host whose error text has the length of the loop's."""
    if closing.error is None:
        return ()
    vhost = closing.connection.vhost
    return tuple(
        queue
        for queue in view.all_queues
        if queue.exclusive and queue.vhost == vhost and closing.said(*error_texts(queue.name, queue.vhost))
    )


def error_texts(queue: str, vhost: str) -> tuple[str, str]:
    """Return the broker's error text without and with the sentence added after 3.7, not yet cut at 255 bytes."""
    first = f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'"
    more = (
        ". It could be originally declared on another connection or the exclusive property value does not match "
        "that of the original declaration."
    )
    return first, first + more


def _connection_of(_view: View, finding: Finding) -> Iterator[tuple[str | None, str]]:
    if finding.subject.kind == "connection":
        yield (finding.subject.vhost, finding.subject.name)


def _loops_of(view: View, finding: Finding) -> Iterator[tuple[str | None, str]]:
    for closing in churn_loops(view):
        if any(queue.key == (finding.subject.vhost, finding.subject.name) for queue in locked_queues(view, closing)):
            yield (closing.subject.vhost, closing.subject.name)


LOOPS_OF_REFUSED_DECLARES = Relation(_loops_of, _connection_of)
"""The cause is a locked queue; the consequence is about the loop of channels that try to declare it."""


def _finding(view: View, closing: ChurnLoop, locked: tuple[Queue, ...]) -> Finding:
    queue = locked[0]
    limit = view.thresholds.clients.refused_for
    severity = Severity.WARNING if closing.lasts >= limit else Severity.INFO
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "queue": queue_facts(queue),
            "candidates": [each.name for each in locked],
            "warning_after_seconds": limit,
        },
        certainty=certainty(severity, closing.lasts, limit),
        seen_seconds=closing.lasts,
        evidence=(
            *loop_evidence(closing, "channel"),
            Evidence(
                key="candidates", source=source("/api/queues", "exclusive") + source("/api/connections", "send_oct")
            ),
        ),
        involved=replace(loop_involved(closing), queues=tuple(map(queue_ref, locked))),
    )

"""exclusive-name-locked (G07): an application cannot have an exclusive queue, for another connection holds its name.

The broker answers 405 RESOURCE_LOCKED and closes the channel. The holder is often the same application's connection
of before, which the broker takes for alive until its heartbeats are missed. Which queue it is, is told by the length
of the broker's text (see `diagnosis.closing`).
Source: https://www.rabbitmq.com/docs/queues#exclusive-queues
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.closing import Closing, closings
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.rules.clients.loop_report import evidence, pace, who
from diagnosis.words import lasting, some

NAME = "exclusive-name-locked"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which the broker's error is as long as that of a locked queue."""
    for closing in closings(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        held = locked(view, closing)
        if held:
            yield _finding(view, closing, held)


def locked(view: View, closing: Closing) -> tuple[Queue, ...]:
    """Exclusive queues that this loop may be after: of this virtual host, with a text of this length."""
    if closing.error is None:
        return ()
    vhost = closing.connection.vhost
    return tuple(
        queue
        for queue in view.all_queues
        if queue.exclusive and queue.vhost == vhost and closing.said(*texts(queue.name, queue.vhost))
    )


def texts(queue: str, vhost: str) -> tuple[str, str]:
    """What the broker says; the second sentence came after 3.7, and both are cut at 255 bytes."""
    first = f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '{vhost}'"
    more = (
        ". It could be originally declared on another connection or the exclusive property value does not match "
        "that of the original declaration."
    )
    return first, first + more


def _loops(_view: View, finding: FindingReport) -> Iterator[tuple[str | None, str]]:
    if finding.subject.kind == "connection":
        yield (finding.subject.vhost, finding.subject.name)


def _loop_of(view: View, finding: FindingReport) -> Iterator[tuple[str | None, str]]:
    for closing in closings(view):
        if any(queue.key == (finding.subject.vhost, finding.subject.name) for queue in locked(view, closing)):
            yield (closing.subject.vhost, closing.subject.name)


LOOPS_OF_REFUSED_DECLARES = Relation(_loop_of, _loops)
"""The cause is a queue that is locked; what follows is about the loop of channels that ask for it."""


def _finding(view: View, closing: Closing, held: tuple[Queue, ...]) -> FindingReport:
    queue = held[0]
    limit = view.thresholds.clients.refused_for
    late = closing.lasts >= limit
    later = (
        ""
        if late
        else f"; a restart looks the same until the old connection is given up; warning after {lasting(limit)}"
    )
    place = f"-p {quote(queue.vhost)}"
    found = evidence(closing, "channel")
    found.append(
        EvidenceReport(
            what="exclusive queues that the error may name",
            value=some(repr(each.name) for each in held),
            source="/api/queues exclusive; length of the error's text",
        )
    )
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=closing.since.iso(),
        summary=(
            f"{who(closing)} wants queue {queue.name!r} ({queue.vhost!r}) for itself and is refused, "
            f"{pace(closing.rate)}, for {lasting(closing.lasts)}{later}"
        ),
        cause=(
            "Another connection declared this exclusive queue and still holds it (405 RESOURCE_LOCKED): the "
            "application's own connection of before, or a second instance of it."
        ),
        evidence=tuple(found),
        next_steps=(
            f"see who holds it: rabbitmqctl list_queues {place} name owner_pid | grep -F -- {quote(queue.name)}",
            "see whose connection that is: rabbitmqctl list_connections pid name user client_properties",
            "if its client is gone: rabbitmqctl close_connection '<PID>' 'holds a queue'; the queue goes with it",
            'later: let the broker name such queues (declare with the name ""), and a heartbeat of 10 to 30 s',
        ),
        runbook=runbook(NAME),
    )

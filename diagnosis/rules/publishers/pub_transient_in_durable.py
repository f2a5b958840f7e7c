"""pub-transient-in-durable (A12): messages that are not persistent wait in durable queues.

They are lost when the node restarts, although they were confirmed: the queue survives, its messages do not.
Seen on 4.0.5: one confirmed message was gone after stop_app and start_app. Quorum queues keep all messages.
Source: https://www.rabbitmq.com/docs/publishers#message-properties
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import amount, lasting, some

NAME = "pub-transient-in-durable"


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each virtual host that has such queues."""
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        if not _at_risk(view, queue):
            continue
        lately = stretch(view.history(queue), _stays)
        if len(lately) > 1 and span(lately) >= min(view.thresholds.early, view.thresholds.interval):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost in sorted(found):
        yield _finding(view, vhost, sorted(found[vhost], key=lambda queue: (-_transient(queue), queue.name)))


def _transient(queue: Queue) -> int:
    """Messages that are not persistent; 0 where the broker does not tell."""
    if queue.messages is None or queue.messages_persistent is None:
        return 0
    return queue.messages - queue.messages_persistent


def _stays(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return _transient(older.value) > 0 and _transient(newer.value) > 0


def _at_risk(view: View, queue: Queue) -> bool:
    if queue.type != "classic" or not queue.durable or queue.exclusive or not queue.messages_ready:
        return False
    limits = view.limits(queue).publishers
    lost = _transient(queue)
    return lost >= limits.transient_least and lost > limits.transient_share * (queue.messages or 0)


def _finding(view: View, vhost: str, queues: list[Queue]) -> FindingReport:
    lost = sum(map(_transient, queues))
    names = some(repr(queue.name) for queue in queues)
    noun = "queue" if len(queues) == 1 else "queues"
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=min(view.history(queue)[0].at.iso() for queue in queues),
        summary=(
            f"{amount(lost, 'message')} in durable {noun} {names} ({vhost!r}) are not persistent: "
            "a restart of the node loses them, though they were confirmed"
        ),
        cause="Their publishers do not set delivery_mode=2 (persistent); a durable queue alone keeps no message.",
        evidence=tuple(
            EvidenceReport(
                what=f"queue {queue.name!r}, not persistent",
                value=f"{_transient(queue)} of {amount(queue.messages or 0, 'message')}, "
                f"seen for {lasting(span(view.history(queue)))}",
                expected="0",
                source="/api/queues messages, messages_persistent",
            )
            for queue in queues[:5]
        ),
        next_steps=(
            f"see how many: rabbitmqctl list_queues -p {quote(vhost)} name durable messages messages_persistent",
            "let the publishers set delivery_mode=2; with AMQP 1.0 the header durable=true (false if absent, 4.2 on)",
            "or move to quorum queues, which keep every message",
            "before a planned restart: let consumers drain these queues first",
        ),
        runbook=runbook(NAME),
    )

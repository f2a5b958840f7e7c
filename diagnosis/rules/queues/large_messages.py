"""large-messages (C13): queues whose messages are large, which memory, disk and quorum queues feel first.

One finding a virtual host that lists them: it is a way of use, not an event.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from collections.abc import Iterator

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import amount, lasting, size, some

NAME = "large-messages"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Collect the queues whose messages are large on average, by virtual host."""
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        if (queue.messages or 0) < view.thresholds.queues.large_least or not queue.message_bytes:
            continue
        if _average(queue) >= view.limits(queue).queues.large_bytes:
            found.setdefault(queue.vhost, []).append(queue)
    for vhost, queues in sorted(found.items()):
        seconds = max(span(stretch(view.history(queue), _both_large)) for queue in queues[:20])
        if seconds >= view.thresholds.early:
            yield _finding(view, vhost, sorted(queues, key=lambda q: (-(q.message_bytes or 0), q.name)))


def _average(queue: Queue) -> float:
    return (queue.message_bytes or 0) / (queue.messages or 1)


def _both_large(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return all(seen.value.messages and seen.value.message_bytes for seen in (older, newer))


def _finding(view: View, vhost: str, queues: list[Queue]) -> FindingReport:
    total = sum(queue.message_bytes or 0 for queue in queues)
    quorum = [queue for queue in queues if queue.type == "quorum"]
    listed = some(
        f"{queue.name!r}: {amount(queue.messages or 0, 'message')} of {size(_average(queue))}" for queue in queues
    )
    cause = "Payloads are sent through the broker that a file store would carry more cheaply."
    if quorum:
        cause += (
            f" {amount(len(quorum), 'quorum queue')} among them: each of their nodes writes every message to its log, "
            "and frees the space late."
        )
    first = queues[0]
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=stretch(view.history(first), _both_large)[0].at.iso(),
        summary=f"Large messages: {size(total)} in {amount(len(queues), 'queue')} of vhost {vhost!r}, {listed}",
        cause=cause,
        evidence=tuple(
            EvidenceReport(
                what=f"queue {queue.name!r}",
                value=f"{size(_average(queue))} a message on average, {size(queue.message_bytes or 0)} in all",
                expected=f"below {size(view.limits(queue).queues.large_bytes)} a message",
                source="/api/queues message_bytes, messages",
            )
            for queue in queues[:3]
        ),
        next_steps=(
            "keep payloads elsewhere and send a reference to them; or compress them",
            (
                "keep such queues short: consumers that keep up, and a small prefetch (a prefetch of 100 is "
                f"{size(100 * _average(first))} here)"
            ),
            (
                "watch memory and disk: rabbitmq-diagnostics memory_breakdown; "
                f"seen for {lasting(span(view.history(first)))} so far"
            ),
            "set a bound: max_message_size in rabbitmq.conf (128 MiB by default before 4.0, 16 MiB since)",
        ),
        runbook=runbook(NAME),
    )

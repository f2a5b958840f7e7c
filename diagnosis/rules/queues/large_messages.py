"""large-messages (C13): queues with large messages, which burden memory, disk and quorum queues.

One finding per virtual host lists the queues, because large messages are a usage pattern, not an event.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues._shared.queue import queue_refs
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

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
        seconds = max(span(stretch(view.history(queue), _have_messages)) for queue in queues[:20])
        if seconds >= view.thresholds.early:
            yield _finding(view, vhost, sorted(queues, key=lambda q: (-(q.message_bytes or 0), q.name)))


def _average(queue: Queue) -> float:
    return (queue.message_bytes or 0) / (queue.messages or 1)


def _have_messages(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return all(seen.value.messages and seen.value.message_bytes for seen in (older, newer))


def _size_facts(queue: Queue) -> dict[str, Fact]:
    return {
        "name": queue.name,
        "messages": queue.messages or 0,
        "average_bytes": _average(queue),
        "total_bytes": queue.message_bytes or 0,
    }


def _finding(view: View, vhost: str, queues: list[Queue]) -> Finding:
    first = queues[0]
    history = stretch(view.history(first), _have_messages)
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=history[0].at.iso(),
        facts={
            "vhost": vhost,
            "queue_count": len(queues),
            "quorum_count": sum(queue.type == "quorum" for queue in queues),
            "total_bytes": sum(queue.message_bytes or 0 for queue in queues),
            "largest": [_size_facts(queue) for queue in queues[:3]],
            "bytes_of_100": 100 * _average(first),
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=span(history),
        evidence=tuple(
            Evidence(
                key="message_size",
                value=_average(queue),
                unit=Unit.BYTES,
                source=source("/api/queues", "message_bytes", "messages"),
                facts={**_size_facts(queue), "limit_bytes": view.limits(queue).queues.large_bytes},
            )
            for queue in queues[:3]
        ),
        involved=Involved(queues=queue_refs(queues)),
    )

"""pub-transient-in-durable (A12): durable queues hold messages that are not persistent.

They are lost when the node restarts, confirmed or not: the queue survives, its messages do not.
Seen on 4.0.5: a confirmed message was lost after stop_app and start_app. Quorum queues keep all messages.
Source: https://www.rabbitmq.com/docs/publishers#message-properties
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.rules.publishers._shared.publishers import publishers
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

NAME = "pub-transient-in-durable"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each virtual host that has such queues."""
    found: dict[str, list[Queue]] = {}
    for queue in view.queues:
        if not _at_risk(view, queue):
            continue
        recent = stretch(view.history(queue), _holds_transient)
        if len(recent) > 1 and span(recent) >= min(view.thresholds.early, view.thresholds.interval):
            found.setdefault(queue.vhost, []).append(queue)
    for vhost in sorted(found):
        yield _finding(view, vhost, sorted(found[vhost], key=lambda queue: (-_transient(queue), queue.name)))


def _transient(queue: Queue) -> int:
    """Messages that are not persistent; 0 if the broker does not show it."""
    if queue.messages is None or queue.messages_persistent is None:
        return 0
    return queue.messages - queue.messages_persistent


def _holds_transient(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return _transient(older.value) > 0 and _transient(newer.value) > 0


def _at_risk(view: View, queue: Queue) -> bool:
    if queue.type != "classic" or not queue.durable or queue.exclusive or not queue.messages_ready:
        return False
    limits = view.limits(queue).publishers
    transient = _transient(queue)
    return transient >= limits.transient_least and transient > limits.transient_share * (queue.messages or 0)


def _all_confirmed(view: View, vhost: str) -> bool:
    """Return whether all publishers that were seen use confirms; a queue does not show who publishes to it."""
    modes = [each.channel.confirm for each in publishers(view) if (each.channel.vhost or "/") == vhost]
    return bool(modes) and all(modes)


def _finding(view: View, vhost: str, queues: list[Queue]) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=min(view.history(queue)[0].at.iso() for queue in queues),
        facts={
            "transient": sum(map(_transient, queues)),
            "queues": [queue.name for queue in queues],
            "confirmed": _all_confirmed(view, vhost),
        },
        evidence=tuple(
            Evidence(
                key="transient",
                value=_transient(queue),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages", "messages_persistent"),
                facts={
                    "queue": queue_facts(queue),
                    "messages": queue.messages or 0,
                    "watched_seconds": span(view.history(queue)),
                },
            )
            for queue in queues[:5]
        ),
        involved=Involved(queues=tuple(map(queue_ref, queues))),
        certainty=Certainty.CERTAIN,
        seen_seconds=max(span(view.history(queue)) for queue in queues),
    )

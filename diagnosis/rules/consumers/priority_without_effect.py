"""priority-without-effect: a consumer holds so many messages of a queue with priorities that urgent ones wait for long.

The broker orders messages by priority while they are ready. What it has sent to a consumer keeps its place, so a
message with a higher priority waits until the consumer has worked off what it holds. Whether the messages differ in
priority is not known.
Source: https://www.rabbitmq.com/docs/priority#interaction-with-consumers
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.objects import involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import delta, span

NAME = "priority-without-effect"

_LEAST_HELD = 10
_WORK = 20.0
"""Seconds of work that a consumer must hold at its own pace."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each queue with priorities, about the consumer that holds the most."""
    for queue in view.queues:
        highest = queue.setting("max-priority")
        if isinstance(highest, int) and highest > 0 and (queue.messages_unacked or 0) >= _LEAST_HELD:
            yield from _judge(view, queue, highest)


def _judge(view: View, queue: Queue, highest: int) -> Iterator[Finding]:
    found = [
        (held(path.channel), path)
        for path in view.links(queue)
        if path.channel is not None and view.queues_served(path.channel.name) == 1
    ]
    if not found:
        return
    holds, path = max(found, key=lambda each: each[0])
    history = view.channel_history(path.channel.name) if path.channel is not None else ()
    acked, seconds = delta(history, "ack"), span(history)
    # One that acknowledges nothing is stuck, or has only just begun.
    if not acked or seconds < view.limits(queue).early or holds < _LEAST_HELD:
        return
    # Also at the first of these readings: messages that come all at once are worked off.
    least = min(holds, *(seen.value.messages_unacked or 0 for seen in history))
    if least * seconds / acked >= _WORK:
        yield _finding(queue, path, highest, holds, acked, seconds)


def _finding(queue: Queue, path: ConsumerPath, highest: int, holds: int, acked: int, seconds: float) -> Finding:
    return Finding(
        rule=NAME,
        severity=Severity.INFO,
        subject=queue_subject(queue),
        facts={
            "queue": queue_facts(queue),
            "holder": process_facts(path),
            "unacked": holds,
            "work_seconds": holds * seconds / acked,
            "ack_rate": acked / seconds,
            "prefetch": path.consumer.prefetch_count,
            "max_priority": highest,
        },
        evidence=(
            Evidence(
                key="holder", value=holds, unit=Unit.MESSAGES, source=source("/api/channels", "messages_unacknowledged")
            ),
            Evidence(
                key="acked",
                value=acked,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.ack"),
                facts={"seconds": seconds},
            ),
            Evidence(
                key="prefetch", value=path.consumer.prefetch_count, source=source("/api/consumers", "prefetch_count")
            ),
        ),
        involved=involved_consumers((queue,), (path,)),
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
    )

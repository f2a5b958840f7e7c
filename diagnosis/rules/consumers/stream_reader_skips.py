"""stream-reader-skips: a reader of a stream skips what is published while it is away, and it is away again and again.

A subscription without an offset, or with `next`, begins with the next message that is published. A reader that restarts
with it is never sent the messages in between, and nobody gets an error. Messages are not deleted: the stream has them.
One return is a deployment, or somebody who looks at the newest messages.
Source: https://www.rabbitmq.com/docs/streams#consuming; seen on 4.3.6 and 3.10.8.
"""

from collections.abc import Iterator
from itertools import pairwise

from ackscope.findings import Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Consumer, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.comings import LASTING, comings, recent_clients
from diagnosis.rules.consumers._shared.stream_restarts import skipped_messages
from diagnosis.rules.queues._shared.queue import certainty, queue_refs, queue_subject
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "stream-reader-skips"

_RETURNS = 2
_WARNING_AFTER = 60.0


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream whose only reader comes and goes."""
    for queue in view.queues:
        if queue.type != "stream" or not view.moved(queue, "publish"):
            continue
        history = view.history(queue)
        returns = comings(history)
        # The search for its readers goes through all consumers, so only streams that readers came back to need it.
        skipped = skipped_messages(view, queue, _readers(view, queue)) if returns >= _RETURNS else None
        if skipped is None:
            continue
        # A reader that is slow as well has more left to read; what it skipped was published while it was away.
        missed = min(skipped, _published_while_away(history))
        if missed >= view.limits(queue).queues.loss_least:
            yield _finding(view, queue, history, returns, missed)


def _readers(view: View, queue: Queue) -> list[Consumer]:
    """Return the readers of a stream in the latest readings of consumers."""
    readings = view.window.readings("consumers")
    return [each for seen in readings for each in seen.value if (each.vhost, each.queue) == queue.key]


def _published_while_away(history: Series[Queue]) -> int:
    """Return the most messages that were published while a stream had no reader."""
    pairs = pairwise(history)
    return sum(delta(pair, "publish") for pair in pairs if any(seen.value.consumers == 0 for seen in pair))


def _finding(view: View, queue: Queue, history: Series[Queue], returns: int, missed: int) -> Finding:
    seconds, clients = span(history), recent_clients(view, queue)
    severity = Severity.WARNING if returns >= LASTING and seconds >= _WARNING_AFTER else Severity.INFO
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=history[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": clients,
            "missed": missed,
            "published": delta(history, "publish"),
            "delivered": delta(history, "deliver"),
            "returns": returns,
            "seconds": seconds,
            "warning_after_seconds": _WARNING_AFTER,
        },
        evidence=(
            Evidence(
                key="missed",
                value=missed,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish", "message_stats.deliver", "consumers"),
            ),
            Evidence(key="offset", source=source("/api/consumers", "arguments.x-stream-offset")),
        ),
        involved=Involved(queues=queue_refs((queue,)), clients=tuple(clients)),
        certainty=certainty(severity, seconds, _WARNING_AFTER),
        seen_seconds=seconds,
    )

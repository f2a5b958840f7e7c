"""queue-expired: the broker deleted an unused queue (setting expires) together with the messages that were in it.

The broker does not report why a queue is gone. That it had this setting and no consumer until then makes expiry likely;
a person who deletes the queue looks the same.
Source: https://www.rabbitmq.com/docs/ttl#queue-ttl
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.purpose import was_consumed
from diagnosis.rules.queues._shared.queue import is_private, queue_subject
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "queue-expired"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with the setting expires that an earlier reading has and the latest one has not."""
    own = view.thresholds.own_prefixes
    for queue in view.gone_queues():
        expires = isinstance(queue.setting("expires"), int)
        if expires and queue.messages and queue.consumers == 0 and not queue.name.startswith(own):
            yield from _judge(view, queue, view.window.readings("queues"))


def _judge(view: View, queue: Queue, readings: Series[tuple[Queue, ...]]) -> Iterator[RuleResult]:
    history = tuple(
        Timestamped(reading.at, found)
        for reading in readings
        if (found := next((each for each in reading.value if each.key == queue.key), None)) is not None
    )
    unused = stretch(history, lambda older, newer: older.value.consumers == newer.value.consumers == 0)
    expires = queue.setting("expires") / 1000
    following = next(reading.at for reading in readings if reading.at.since(history[-1].at) > 0)
    # Used shortly before, so it was deleted by a client.
    if len(unused) < len(history) and following.since(unused[0].at) + view.thresholds.interval < expires:
        return
    messages = queue.messages or 0
    lasting = queue.durable is True and not is_private(queue)
    many = messages >= view.thresholds.queues.loss_least
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting and many else Severity.INFO,
        subject=queue_subject(queue),
        since=following.iso(),
        facts={
            "queue": queue_facts(queue),
            "messages": messages,
            "expires_seconds": expires,
            "expires_is_argument": "x-expires" in queue.arguments,
            "unused_seconds": span(unused),
            "was_consumed": was_consumed(queue),
        },
        certainty=Certainty.LIKELY,
        seen_seconds=span(unused),
        evidence=(
            Evidence(key="messages", value=messages, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
            Evidence(
                key="expires",
                value=expires,
                unit=Unit.SECONDS,
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            Evidence(key="unused", value=span(unused), unit=Unit.SECONDS, source=source("/api/queues", "consumers")),
        ),
        involved=Involved(queues=(queue_ref(queue),)),
    )

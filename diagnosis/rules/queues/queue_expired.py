"""queue-expired: the broker deleted an unused queue (setting expires) together with the messages that were in it.

The broker does not report why a queue is gone. That it had this setting and no consumer until then makes expiry likely;
a person who deletes the queue looks the same.
Source: https://www.rabbitmq.com/docs/ttl#queue-ttl
"""

from collections.abc import Iterator

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.purpose import was_consumed
from diagnosis.rules.queues._shared.queue import is_private, queue_subject
from diagnosis.series import span, stretch
from diagnosis.window import Series

NAME = "queue-expired"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with the setting expires that an earlier reading has and the latest one has not."""
    own = view.thresholds.own_prefixes
    for queue in view.gone_queues():
        if queue.messages and not queue.name.startswith(own):
            found = expired(view, queue)
            if found is not None:
                yield _finding(view, queue, *found)


def expired(view: View, queue: Queue) -> tuple[Series[Queue], Instant] | None:
    """Return the readings without a consumer of a queue that expired, and the first one without the queue.

    None if the queue may not expire, or was used too shortly before: then a client deleted it.
    """
    if not isinstance(queue.setting("expires"), int) or queue.consumers != 0:
        return None
    history = view.listings(queue)
    unused = stretch(history, lambda older, newer: older.value.consumers == newer.value.consumers == 0)
    expires = queue.setting("expires") / 1000
    following = next(at for at, _ in view.presence(queue.key) if at.since(history[-1].at) > 0)
    if len(unused) < len(history) and following.since(unused[0].at) + view.thresholds.interval < expires:
        return None
    return unused, following


def _finding(view: View, queue: Queue, unused: Series[Queue], following: Instant) -> Finding:
    expires = queue.setting("expires") / 1000
    messages = queue.messages or 0
    lasting = queue.durable is True and not is_private(queue)
    many = messages >= view.thresholds.queues.loss_least
    return Finding(
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

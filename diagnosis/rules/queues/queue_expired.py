"""queue-expired: the broker deleted an unused queue (setting expires) together with the messages that were in it.

The broker does not report why a queue is gone. That it had this setting and no consumer until then makes expiry likely;
a person who deletes the queue looks the same. A delay queue that lives longer than its messages, as frameworks declare
one for each delay, is empty when it expires: its messages have been dead-lettered before.
Source: https://www.rabbitmq.com/docs/ttl#queue-ttl
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Suppressed, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts, queue_ref
from diagnosis.purpose import was_consumed
from diagnosis.rules.queues._shared.deletions import (
    Deletion,
    deletions_of,
    is_by_expiry,
    node_started,
    unused_before,
)
from diagnosis.rules.queues._shared.queue import is_lasting, queue_subject
from diagnosis.series import span

NAME = "queue-expired"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that was deleted within the window, also if it was declared again since."""
    for key in view.interrupted_queues(1):
        presence = view.presence(key)
        again = presence[-1][1] is not None
        # The counters of a queue that is listed also begin again when its node starts.
        found = [each for each in deletions_of(presence, 1) if each.lost and not (again and node_started(view, each))]
        if not is_by_expiry(view, found):
            continue
        queue = found[-1].before.value
        if _is_emptied_before(queue):
            yield Suppressed(rule=NAME, subject=queue_subject(queue), reason="emptied_before")
        else:
            yield _finding(view, found, again=again)


def _is_emptied_before(queue: Queue) -> bool:
    """Return whether the messages of an unconsumed queue are dead-lettered before the queue expires.

    The queue expires some time after it was declared or used last, as a client does for each message that it delays.
    """
    ttl, expires = queue.setting("message-ttl"), queue.setting("expires")
    delays = isinstance(queue.setting("dead-letter-exchange"), str) and not was_consumed(queue)
    return delays and isinstance(ttl, int) and isinstance(expires, int) and ttl < expires


def _finding(view: View, deletions: list[Deletion], *, again: bool) -> Finding:
    queue = deletions[-1].before.value
    expires, unused_seconds = queue.setting("expires") / 1000, span(unused_before(view, deletions[-1]) or ())
    messages = sum(each.before.value.messages or 0 for each in deletions)
    lasting = is_lasting(queue)
    many = messages >= view.thresholds.queues.loss_least
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting and many else Severity.INFO,
        subject=queue_subject(queue),
        since=deletions[0].after.iso(),
        facts={
            "queue": queue_facts(queue),
            "messages": messages,
            "times": len(deletions),
            "again": again,
            "expires_seconds": expires,
            "message_ttl_seconds": ttl / 1000 if isinstance(ttl := queue.setting("message-ttl"), int) else None,
            "expires_is_argument": "x-expires" in queue.arguments,
            "unused_seconds": unused_seconds,
            "was_consumed": was_consumed(queue),
        },
        certainty=Certainty.LIKELY,
        seen_seconds=unused_seconds,
        evidence=(
            Evidence(key="messages", value=messages, unit=Unit.MESSAGES, source=source("/api/queues", "messages")),
            Evidence(
                key="expires",
                value=expires,
                unit=Unit.SECONDS,
                source=source("/api/queues", "arguments", "effective_policy_definition"),
            ),
            Evidence(key="unused", value=unused_seconds, unit=Unit.SECONDS, source=source("/api/queues", "consumers")),
        ),
        involved=Involved(queues=(queue_ref(queue),)),
    )

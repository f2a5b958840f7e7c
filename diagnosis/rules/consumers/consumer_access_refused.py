"""consumer-access-refused: a user may not read its queue, so each attempt closes the channel (403).

The management API shows no reason. It shows how long the broker's error text was (see `diagnosis.churn_loops`). A text
as long as the refusal of a queue of that virtual host, for that user, is a likely cause but no proof. A queue that is
consumed is an unlikely one if the refusal of a publish has the same length (see pub-access-refused).

To consume, to get a message and to purge the queue need the same permission. The bytes of the client show the first:
97 with a name of 13 bytes and a tag of 38, and 54 for each of the others (4.3.6).
Source: https://www.rabbitmq.com/docs/access-control; seen on 3.10.8 and 4.3.6
"""

from collections.abc import Iterator
from dataclasses import replace

from ackscope.findings import Certainty, Evidence, Finding, Severity, source
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops, text_bytes
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, loop_evidence, loop_facts, loop_involved
from diagnosis.rules.clients._shared.refusals import access_words, refusal
from diagnosis.rules.publishers._shared.native_publishers import without_sessions
from diagnosis.rules.publishers._shared.refused_publish import MOST_OF_CONSUMER, refused_publishes
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs

NAME = "consumer-access-refused"

_GET, _CONSUME = 41, 46
"""Fewest bytes of a cycle beside the name of the queue. basic.get and queue.purge have no more, basic.consume a tag."""
_NEAR = 1.5
"""Bytes by which the mean of some cycles may differ from those of one."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which the broker's error is as long as that about a queue that the user may not read."""
    yield from without_sessions(view, NAME)
    publishing = {each.closing.connection.name for each in refused_publishes(view) if each.forbidden}
    for closing in churn_loops(view):
        if closing.whole or closing.error is None or closing.lasts < view.thresholds.early:
            continue
        if (closing.received or 0.0) > MOST_OF_CONSUMER:
            continue
        busy = closing.alone and max(closing.delivered, closing.published, closing.declares) >= FEW_MESSAGES
        refused = () if busy else _refused_queues(view, closing)
        unlikely = closing.connection.name in publishing and all(queue.consumers for queue in refused)
        if refused and not unlikely:
            yield _finding(view, closing, refused)


def _refused_queues(view: View, closing: ChurnLoop) -> list[Queue]:
    """Return the queues whose refusal has the length of the error; those without a consumer, if there are any."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    fixed = {text_bytes(refusal(word, "queue", "", vhost, user)) for word in access_words(view, "read")}
    found = [
        queue
        for queue in view.all_queues
        if queue.vhost == vhost and (closing.error or 0) - text_bytes(queue.name) in fixed and not queue.exclusive
    ]
    return [queue for queue in found if not queue.consumers] or found


def _request(closing: ChurnLoop, queue: Queue) -> str | None:
    """Return "consume", "get_or_purge", or None if the bytes of a cycle fit neither."""
    beside = (closing.received or 0.0) - text_bytes(queue.name)
    if beside >= _CONSUME - _NEAR:
        return "consume"
    return "get_or_purge" if abs(beside - _GET) <= _NEAR else None


def _finding(view: View, closing: ChurnLoop, refused: list[Queue]) -> Finding:
    limit = view.thresholds.clients.refused_for
    late = closing.lasts >= limit
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=closing.subject,
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "queues": [queue.name for queue in refused[:MAX_NAMED]],
            "request": _request(closing, refused[0]),
            "waiting": sum(queue.messages_ready or 0 for queue in refused) if len(refused) == 1 else None,
            "warning_after_seconds": limit,
        },
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=closing.lasts,
        evidence=(
            *loop_evidence(closing, "channel"),
            Evidence(
                key="queues", source=source("/api/queues", "name") + source("/api/connections", "send_oct", "user")
            ),
        ),
        involved=replace(loop_involved(closing), queues=queue_refs(refused)),
    )

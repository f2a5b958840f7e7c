"""consumer-ack-timeout (B08): the broker ends consumers that hold messages for too long, or is about to.

All that the channel held is delivered again, and processed a second time. How it is seen is in `timeouts`.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator

from ackscope.clock import iso
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.rules.consumers.commands import set_policy
from diagnosis.rules.consumers.timeouts import Overdue, overdue
from diagnosis.words import amount, client, lasting, list_consumers, some

NAME = "consumer-ack-timeout"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Tell of every queue with such consumers."""
    by_queue: dict[tuple[str, str], list[Overdue]] = defaultdict(list)
    for each in overdue(view):
        by_queue[each.queue.key].append(each)
    for found in by_queue.values():
        yield _finding(view, found)


def _connections(view: View, finding: FindingReport) -> Iterable[Hashable]:
    key = (finding.subject.vhost, finding.subject.name)
    return {each.consumer.connection_name for each in overdue(view) if each.ended and each.queue.key == key}


def _connection(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return (finding.subject.name,)


CONNECTIONS_OF_CLOSED_CHANNELS = Relation(_connections, _connection)
"""The cause closes channels; what follows is about a connection of such a channel."""


def _finding(view: View, found: list[Overdue]) -> FindingReport:
    ended = [each for each in found if each.ended]
    worst = max(ended or found, key=lambda each: each.idle - each.timeout)
    queue, timeout = worst.queue, worst.timeout
    links = {each.consumer.tag: each.consumer for each in ended or found}
    names = {client(view.connection(each.connection_name), each.connection_name) for each in links.values()}
    who = some(repr(name) for name in sorted(names))
    held = sum({each.consumer.channel_name: each.held for each in ended or found}.values())
    acts = "cancelled the consumer" if (view.version or (0, 0)) >= (4, 3) else "closed the channel (406)"
    if ended:
        summary = (
            f"The broker {acts} of {who} on queue {queue.name!r} ({queue.vhost!r}): {amount(held, 'message')} held for "
            f"{lasting(timeout)} or more without acknowledgement are delivered again"
        )
    else:
        left = max(0.0, timeout - worst.idle)
        summary = (
            f"{who} holds {amount(held, 'message')} of queue {queue.name!r} ({queue.vhost!r}) for "
            f"{lasting(worst.idle)} or "
            f"more; the broker ends a consumer after {lasting(timeout)}: in {lasting(left)} or less"
        )
    source = "/api/consumers consumer_timeout" if worst.told else "RabbitMQ's default; this version does not tell it"
    idle = view.now.wall - worst.idle
    policy = set_policy(queue, "ack-timeout", '{"consumer-timeout":7200000}')
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=iso(idle),
        summary=summary,
        cause=(
            "A delivery may stay unacknowledged for the acknowledgement timeout and no longer. Its handler takes "
            "longer "
            "than that, hangs, or never acknowledges. All that the consumer holds goes back to the queue and is "
            "processed again, and many applications do not notice that they consume no more."
        ),
        evidence=(
            EvidenceReport(
                what="held without any acknowledgement",
                value=f"{amount(held, 'message')} for {lasting(worst.idle)} or more",
                expected=f"less than {lasting(timeout)}",
                source="/api/channels messages_unacknowledged, idle_since",
            ),
            EvidenceReport(what="acknowledgement timeout", value=lasting(timeout), source=source),
            EvidenceReport(
                what="consumers",
                value=some((f"{each.tag!r} on channel {each.channel_name!r}" for each in links.values()), 5),
                expected="there" if ended else "",
                source="gone from /api/consumers, connection still there" if ended else "/api/consumers",
            ),
        ),
        next_steps=(
            f"see who consumes now: {list_consumers(queue)}",
            f"ask {who} what it does for so long: take a thread dump; restart it if it consumes no more",
            f"a job that needs the time: acknowledge before it, or raise the timeout of its queue (3.12 on): {policy}",
            "on a node: grep -i 'timed out' in its log says which delivery tag it was",
        ),
        runbook=runbook(NAME),
    )

"""consumer-ack-timeout (B08): the broker ends consumers that hold messages for too long, or will.

All messages of the channel are redelivered and processed a second time.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict

from ackscope.clock import iso
from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Unit, source
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.rules.consumers._shared.ack_timeouts import OverdueConsumer, overdue_consumers, returned_deliveries
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.objects import queue_subject
from diagnosis.rules.queues._shared.queue import queue_with_policy

NAME = "consumer-ack-timeout"

_SURE = 3
"""Acknowledgements from which a pace is sure enough for a warning."""

_ROUNDS = 2
"""Times that messages came back from which it was the timeout, if no consumer is seen that the broker ended."""
_RETURNS = source("/api/queues", "consumers", "messages_unacknowledged", "message_stats.ack")


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each queue with consumers past or near the acknowledgement timeout."""
    by_queue: dict[tuple[str, str], list[OverdueConsumer]] = defaultdict(list)
    for each in overdue_consumers(view):
        by_queue[each.queue.key].append(each)
    for found in by_queue.values():
        yield _finding(view, found)


def _connections(view: View, finding: Finding) -> Iterable[Hashable]:
    key = (finding.subject.vhost, finding.subject.name)
    return {each.consumer.connection_name for each in overdue_consumers(view) if each.ended and each.queue.key == key}


def _connection(_view: View, finding: Finding) -> Iterable[Hashable]:
    return (finding.subject.name,)


CONNECTIONS_OF_CLOSED_CHANNELS = Relation(_connections, _connection)
"""The cause closes channels; the effect is about a connection of such a channel."""


def _of_held(view: View, finding: Finding) -> Iterable[Hashable]:
    return queue_key(view, finding) if finding.severity is Severity.INFO and not finding.facts["ready"] else ()


HELD_WITHOUT_BACKLOG = Relation(queue_key, _of_held)
"""The effect is information about messages of the same queue that are held while none waits."""


def _finding(view: View, found: list[OverdueConsumer]) -> Finding:
    ended = [each for each in found if each.ended]
    held = [each for each in found if each.pace is None]
    concerned = ended or held or found
    worst = max(concerned, key=lambda each: each.idle_seconds - each.timeout_seconds)
    queue = worst.queue
    consumers = list({each.consumer.tag: each.consumer for each in concerned}.values())
    connections = {each.connection_name: view.connection(each.connection_name) for each in consumers}
    names = {client_name(connection, name) for name, connection in connections.items()}
    listed: list[Fact] = [{"tag": each.tag, "channel": each.channel_name} for each in consumers]
    unacked = sum({each.consumer.channel_name: each.unacked for each in concerned}.values())
    early = worst.pace is not None and worst.acked < _SURE
    returned = returned_deliveries(view, queue, worst.timeout_seconds) if worst.pace is None else None
    if returned is not None and returned.rounds < _ROUNDS and not ended:
        returned = None
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else Severity.WARNING,
        subject=queue_subject(queue),
        since=iso(view.now.wall - (worst.idle_seconds if worst.pace is None else 0.0)),
        facts={
            "queue": queue_with_policy(view, queue),
            "ended": bool(ended),
            "works": any(each.works for each in concerned),
            "cancels_consumer": (view.version or (0, 0)) >= (4, 3),
            "clients": sorted(name for name in names if name),
            "consumers": listed,
            "unacked": unacked,
            "held_seconds": worst.idle_seconds,
            "timeout_seconds": worst.timeout_seconds,
            "timeout_reported": worst.timeout_reported,
            "remaining_seconds": max(0.0, worst.timeout_seconds - worst.idle_seconds),
            "pace": worst.pace,
            "by_argument": isinstance(queue.arguments.get("x-consumer-timeout"), int),
            "returned": None if returned is None else asdict(returned),
            "fitting_prefetch": None if worst.pace is None else max(1, int(worst.pace * worst.timeout_seconds / 2)),
        },
        evidence=(
            Evidence(
                key="held" if worst.pace is None else "waits",
                value=worst.idle_seconds,
                unit=Unit.SECONDS,
                source=source("/api/channels", "messages_unacknowledged", "idle_since")
                if worst.pace is None
                else source("/api/channels", "messages_unacknowledged") + source("/api/queues", "message_stats.ack"),
            ),
            Evidence(
                key="timeout",
                value=worst.timeout_seconds,
                unit=Unit.SECONDS,
                source=source("/api/consumers", "consumer_timeout"),
            ),
            *(
                [Evidence(key="returned", value=returned.messages, unit=Unit.MESSAGES, source=_RETURNS)]
                if returned is not None
                else []
            ),
            Evidence(
                key="consumers",
                source=source("/api/consumers") + (source("/api/connections") if ended else ()),
            ),
        ),
        involved=Involved(
            queues=(queue_ref(queue),),
            channels=tuple(dict.fromkeys(each.channel_name for each in consumers if each.channel_name)),
            connections=tuple(name for name in connections if name),
            clients=tuple(
                dict.fromkeys(each.client_name for each in connections.values() if each and each.client_name)
            ),
        ),
        certainty=_certainty(worst, early=early),
    )


def _certainty(worst: OverdueConsumer, *, early: bool) -> Certainty:
    if early:
        return Certainty.EARLY
    return Certainty.CERTAIN if worst.timeout_reported and not worst.ended and worst.pace is None else Certainty.LIKELY

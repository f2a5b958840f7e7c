"""orphaned-unacked (B19): a quorum queue counts messages as unacknowledged that no channel holds.

Nobody will acknowledge them, and they are not redelivered; they also prevent the queue's log from being truncated.
Reported for quorum queues after a network disruption and an election (rabbitmq-server issue 15473). It cannot be
reproduced in a lab; a unit test with made-up readings covers it.
"""

from collections.abc import Iterator
from functools import partial

from ackscope.findings import Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

NAME = "orphaned-unacked"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue with unacknowledged messages."""
    for queue in view.queues:
        # A polling client also holds messages, on channels that the list of consumers does not link to the queue.
        if queue.type != "quorum" or not queue.messages_unacked or queue.stats.get:
            continue
        links = view.links(queue)
        held = _unacked_on_channels(view, links)
        if held is None:
            continue
        # A channel whose consumers were cancelled still holds what was delivered to them.
        held += per_view(view, _held_after_cancel).get(queue.vhost, 0)
        orphaned = stretch(view.history(queue), partial(_both_above, held))
        orphans = min((seen.value.messages_unacked or 0) for seen in orphaned) - held
        if orphans > 0 and span(orphaned) >= view.limits(queue).consumers.orphaned_for:
            yield _finding(queue, links, orphans, held, orphaned)


def _held_after_cancel(view: View) -> dict[str | None, int]:
    """Return by virtual host the messages on channels without consumers, except those of polling clients."""
    found: dict[str | None, int] = {}
    for channel in view.channels:
        if channel.messages_unacked and channel.consumer_count == 0 and not channel.stats.get:
            found[channel.vhost] = found.get(channel.vhost, 0) + channel.messages_unacked
    return found


def _unacked_on_channels(view: View, links: tuple[ConsumerPath, ...]) -> int | None:
    """Return the most messages that its consumers' channels held recently.

    None if that is unknown, or if the channels also serve other queues.
    """
    found: dict[str, int] = {}
    for link in links:
        channel = link.channel
        if channel is None or channel.acks_uncommitted or view.queues_served(channel.name) != 1:
            return None
        history = view.channel_history(channel.name)
        if any(seen.value.messages_unacked is None for seen in history):
            return None
        found[channel.name] = max(seen.value.messages_unacked or 0 for seen in history)
    return sum(found.values())


def _both_above(held: int, older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (older.value.messages_unacked or 0) > held and (newer.value.messages_unacked or 0) > held


def _finding(
    queue: Queue, links: tuple[ConsumerPath, ...], orphans: int, held: int, orphaned: Series[Queue]
) -> Finding:
    unacked = queue.messages_unacked or 0
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=orphaned[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "orphans": orphans,
            "unacked": unacked,
            "channel_unacked": held,
            "clients": client_names(links),
        },
        evidence=(
            Evidence(
                key="queue_unacked",
                value=unacked,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged"),
            ),
            Evidence(
                key="channel_unacked",
                value=held,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
            Evidence(
                key="consumers",
                value=len(links),
                source=source("/api/consumers"),
                facts={"consumers": [consumer_facts(link) for link in links]},
            ),
        ),
        involved=involved_consumers((queue,), links),
        seen_seconds=span(orphaned),
    )

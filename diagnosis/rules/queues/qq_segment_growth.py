"""qq-segment-growth (C14): a quorum queue cannot free its disk space because one old message is unacknowledged.

The log of a quorum queue can only be truncated before its oldest message. If a consumer does not acknowledge one
message while others work, all later messages stay on disk, although the queue looks small. The size follows from the
messages acknowledged since then.
Measured on 4.0.5 after 1031 MiB of messages: 1056 MB were on disk with one unacknowledged message, 65 MB without. On
4.3.6 the log frees messages in between, so that version is not judged.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import delta, span, stretch
from diagnosis.window import Timestamped

NAME = "qq-segment-growth"

COMPACTS = (4, 3)
"""The first version in which an old message pins no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A quorum queue whose log cannot be truncated.

    Attributes:
        holders: consumers that have unacknowledged messages and acknowledge none.
        seconds: minimum seconds since the first of them stopped acknowledging.
        size: approximate bytes published to the queue and acknowledged since then.
    """

    queue: Queue
    holders: tuple[ConsumerPath, ...]
    seconds: float
    size: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue with several consumers and some traffic."""
    if view.version is None or view.version >= COMPACTS:
        return
    for queue in view.queues:
        if queue.type != "quorum" or (queue.consumers or 0) < 2 or not queue.messages_unacked:
            continue
        if not queue.message_bytes or not view.moved(queue, "ack"):
            continue
        pinned = _pinned(view, queue)
        if pinned is not None and pinned.size >= view.limits(queue).queues.segment_pinned:
            yield _finding(view, pinned)


def _pinned(view: View, queue: Queue) -> Pinned | None:
    holders = []
    held = 0.0
    for link in view.links(queue):
        channel = link.channel
        if channel is None or channel.consumer_count != 1 or not channel.messages_unacked:
            continue
        seconds = _idle_seconds(view, channel)
        if seconds >= view.thresholds.early:
            holders.append(link)
            held = max(held, seconds)
    if not holders:
        return None
    history = view.history(queue)
    recent = tuple(seen for seen in history if view.now.since(seen.at) <= held + view.thresholds.interval)
    watched = span(recent)
    if watched <= 0:
        return None
    # The rate before the window is assumed to have been the same.
    acked = delta(recent, "ack") / watched * held
    average = (queue.message_bytes or 0) / (queue.messages or 1)
    return Pinned(queue=queue, holders=tuple(holders), seconds=held, size=acked * average)


def _idle_seconds(view: View, channel: Channel) -> float:
    """Return the idle seconds of a channel with unacknowledged messages, by readings or the broker's clock."""
    seen = span(stretch(view.channel_history(channel.name), _idle))
    if seen <= 0:
        return 0.0
    return max(seen, view.now.wall - channel.idle_since) if channel.idle_since is not None else seen


def _idle(older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    held = older.value.messages_unacked == newer.value.messages_unacked and bool(newer.value.messages_unacked)
    return held and delta((older, newer), "ack", "deliver", "redeliver") == 0


def _finding(view: View, pinned: Pinned) -> Finding:
    queue = pinned.queue
    node = view.node(queue.leader or queue.node)
    free = node.disk_free if node is not None else None
    much = view.limits(queue).queues.segment_much
    bad = pinned.size >= much or (free is not None and pinned.size >= 0.5 * free)
    unacked = [link.channel.messages_unacked if link.channel else 0 for link in pinned.holders]
    holders = [consumer_facts(link) for link in pinned.holders]
    evidence = [
        Evidence(
            key="acked",
            value=pinned.size,
            unit=Unit.BYTES,
            source=source("/api/queues", "message_stats.ack", "message_bytes", "messages"),
        ),
        Evidence(
            key="queue_size",
            value=queue.message_bytes,
            unit=Unit.BYTES,
            source=source("/api/queues", "messages", "message_bytes"),
        ),
        *(
            Evidence(
                key="holder",
                value=count,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged", "message_stats.ack", "idle_since"),
                facts={"holder": holder},
            )
            for holder, count in list(zip(holders, unacked, strict=True))[:3]
        ),
    ]
    if free is not None:
        evidence.append(Evidence(key="free", value=free, unit=Unit.BYTES, source=source("/api/nodes", "disk_free")))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if bad else Severity.INFO,
        subject=queue_subject(queue),
        facts={
            "queue": queue_facts(queue),
            "pinned_bytes": pinned.size,
            "held_seconds": pinned.seconds,
            "holders": holders,
            "members": len(queue.members or ()),
            "messages": queue.messages,
            "message_bytes": queue.message_bytes,
            "free_bytes": free,
            "warning_from_bytes": much,
        },
        seen_seconds=pinned.seconds,
        evidence=tuple(evidence),
        involved=involved_queue(queue, pinned.holders),
    )

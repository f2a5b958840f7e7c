"""pub-nacked-overflow (A08): a full queue refuses what is published to it.

A publisher with confirms gets basic.nack; one without learns nothing, and its message is lost. The broker does not
count nacks, so two balances show them:

* of the queue: messages published but neither stored nor delivered (not used for a queue with a message TTL);
* of a channel in confirm mode: messages published but neither confirmed nor unconfirmed. Unroutable messages are
  confirmed, so they are not included. A channel does not show where it publishes to: it is a suspect, not a proof.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import (
    Certainty,
    Evidence,
    Fact,
    Finding,
    Inconclusive,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_facts, queue_ref
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series

NAME = "pub-nacked-overflow"

REFUSING = ("reject-publish", "reject-publish-dlx")
# Counters of messages that a client took from the queue for good.
DELIVERED_FOR_GOOD = ("ack", "deliver_no_ack", "get_no_ack")
_LIMITS = ("max-length", "max-length-bytes")
# Share of the published messages below which a difference is noise.
_NOISE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class NackedPublisher:
    """A channel with nacked publishes, to some queue of its virtual host: at least `nacked` recently."""

    channel: Channel
    connection: Connection | None
    nacked: int

    @property
    def client(self) -> str:
        """The application by the name of its connection."""
        return client_name(self.connection, self.channel.connection_name) or "unknown connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueue:
    """A queue at its limit.

    Attributes:
        recent: the readings that it is judged by.
        history: all readings of it.
        refused: messages refused in `recent`; None if unknown.
        suspects: channels whose publishes were nacked.
        without_confirms: channels that publish without confirms in its virtual host.
    """

    queue: Queue
    recent: Series[Queue]
    history: Series[Queue]
    refused: int | None
    suspects: tuple[NackedPublisher, ...]
    without_confirms: tuple[Channel, ...]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that refuses publishes when it is full, and is full."""
    suspects: tuple[NackedPublisher, ...] | None = None
    without_publishers: list[str] = []
    for queue in view.queues:
        if queue.setting("overflow") not in REFUSING:
            continue
        recent = last(view.history(queue), view.thresholds.interval)
        levels = [_level(seen.value) for seen in recent]
        if len(recent) < 2 or max(levels) < 1.0 or min(levels[-2:]) < view.limits(queue).publishers.overflow_relief:
            continue
        refused = _refused(recent)
        if suspects is None:
            suspects = _suspects(view)
        here = tuple(suspect for suspect in suspects if suspect.channel.vhost == queue.vhost)
        without_confirms = _publishers_without_confirms(view, queue.vhost)
        certain = (refused or 0) > 0 or (refused is None and bool(here))
        if certain:
            severity = Severity.CRITICAL
        elif refused is None and without_confirms:
            severity = Severity.WARNING
        elif min(levels[-2:]) >= 1.0:
            severity = Severity.INFO
        else:
            continue
        if not view.fresh("channels"):
            without_publishers.append(queue.name)
        yield _finding(
            view,
            severity,
            FullQueue(
                queue=queue,
                recent=recent,
                history=view.history(queue),
                refused=refused,
                suspects=here if certain else (),
                without_confirms=without_confirms if certain or severity is Severity.WARNING else (),
            ),
        )
    if without_publishers:
        yield Inconclusive(rule=NAME, reason="channels_not_read", facts={"queues": sorted(without_publishers)})


def _finding(view: View, severity: Severity, full: FullQueue) -> Finding:
    queue, seconds = full.queue, span(full.recent)
    acked = delta(full.recent, "ack")
    connections = [each.connection for each in full.suspects]
    connections += [view.connection(channel.connection_name) for channel in full.without_confirms]
    channels = [*(each.channel for each in full.suspects), *full.without_confirms]
    involved = involved_connections(connections, (channel.name for channel in channels))
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=_full_since(full),
        facts={
            "queue": queue_facts(queue),
            "ready": queue.messages_ready or 0,
            "ready_bytes": queue.message_bytes_ready or 0,
            "limit_messages": _limit(queue, "max-length"),
            "limit_bytes": _limit(queue, "max-length-bytes"),
            "limit_is_argument": any(f"x-{key}" in queue.arguments for key in _LIMITS),
            "raised_limits": _raised_limits(queue),
            "overflow": queue.setting("overflow"),
            "consumers": queue.consumers or 0,
            "published": delta(full.recent, "publish"),
            "acked": acked,
            "ack_rate": acked / max(seconds, 1.0),
            "refused": full.refused,
            "interval_seconds": seconds,
            "nacked_clients": sorted({each.client for each in full.suspects}),
            "channels_without_confirms": [channel.name for channel in full.without_confirms],
        },
        evidence=tuple(_evidence(full)),
        involved=replace(involved, queues=(queue_ref(queue),)),
        certainty=Certainty.CERTAIN if full.refused is not None else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _evidence(full: FullQueue) -> Iterator[Evidence]:
    yield Evidence(
        key="ready",
        value=full.queue.messages_ready,
        unit=Unit.MESSAGES,
        source=source(
            "/api/queues", "messages_ready", "message_bytes_ready", "arguments", "effective_policy_definition"
        ),
    )
    yield Evidence(
        key="published",
        value=delta(full.recent, "publish"),
        unit=Unit.MESSAGES,
        source=source("/api/queues", "message_stats.publish"),
    )
    if full.refused is not None:
        yield Evidence(
            key="refused",
            value=full.refused,
            unit=Unit.MESSAGES,
            source=source("/api/queues", "message_stats.publish", "message_stats.ack", "messages"),
        )
    for suspect in full.suspects[:3]:
        yield Evidence(
            key="nacked",
            value=suspect.nacked,
            unit=Unit.MESSAGES,
            source=source("/api/channels", "message_stats.publish", "message_stats.confirm", "messages_unconfirmed"),
            facts={"publisher": {"client": suspect.client, "channel": suspect.channel.name}},
        )
    if full.without_confirms:
        yield Evidence(
            key="without_confirms",
            value=len(full.without_confirms),
            source=source("/api/channels", "confirm", "message_stats.publish"),
        )


def _full_since(full: FullQueue) -> str:
    """Return the first of the latest readings near the limit; the count restarts once a queue has drained by half."""
    first = full.recent[0]
    for seen in reversed(full.history):
        if (seen.value.messages_ready or 0) * 2 < (full.queue.messages_ready or 0):
            break
        first = seen
    return first.at.iso()


def _limit(queue: Queue, name: str) -> int | None:
    value = queue.setting(name)
    return value if isinstance(value, int) else None


def _raised_limits(queue: Queue) -> dict[str, Fact]:
    """Return the definition of a policy with twice the limits."""
    limits: dict[str, Fact] = {key: value * 2 for key in _LIMITS if (value := _limit(queue, key)) is not None}
    return {**limits, "overflow": queue.setting("overflow")}


def _level(queue: Queue) -> float:
    """Return how full a queue is: 1 if the next message is refused; 0 without a limit or a count.

    Only ready messages count. Source: https://www.rabbitmq.com/docs/maxlength
    """
    levels = [0.0]
    messages, ready_bytes = queue.messages_ready, queue.message_bytes_ready
    length, space = queue.setting("max-length"), queue.setting("max-length-bytes")
    if isinstance(length, int) and messages is not None:
        levels.append(messages / length if length > 0 else 1.0)
    if isinstance(space, int) and ready_bytes is not None:
        # The message that no longer fits is refused: add one of average size.
        average = ready_bytes / messages if messages else 0.0
        levels.append((ready_bytes + average) / space if space > 0 else 1.0)
    return max(levels)


def _refused(recent: Series[Queue]) -> int | None:
    """Return the messages published to the queue that it neither holds nor delivered; None if unknown.

    Counters are current but `messages` is up to 5 s old, so a few messages are noise for a queue at its limit.
    """
    first, final = recent[0].value, recent[-1].value
    if final.setting("message-ttl") is not None or first.messages is None or final.messages is None:
        return None
    stored = final.messages - first.messages
    published = delta(recent, "publish")
    refused = published - delta(recent, *DELIVERED_FOR_GOOD) - stored
    return refused if refused >= max(2.0, _NOISE * published) else 0


def _suspects(view: View) -> tuple[NackedPublisher, ...]:
    """Return channels in confirm mode that recently published more than is confirmed or unconfirmed, most first."""
    found = []
    for channel in view.channels:
        if channel.confirm is not True or not channel.stats.publish:
            continue
        nacked = _nacked(view, channel)
        if nacked is not None and nacked > 0:
            connection = view.connection(channel.connection_name)
            found.append(NackedPublisher(channel=channel, connection=connection, nacked=nacked))
    return tuple(sorted(found, key=lambda suspect: (-suspect.nacked, suspect.channel.name)))


def _nacked(view: View, channel: Channel) -> int | None:
    """Return the minimum number of recently nacked publishes of a channel; None if the broker does not show it.

    Counters are current but `messages_unconfirmed` is up to 5 s old. So the largest number of unconfirmed messages is
    subtracted, and the rest must exceed a share of what was published: a few messages in flight look like a few nacks.
    """
    history = view.channel_history(channel.name)
    recent = last(history, view.thresholds.interval)
    unconfirmed = [seen.value.messages_unconfirmed for seen in recent]
    known = [number for number in unconfirmed if number is not None]
    if not known or len(known) < len(unconfirmed):
        return None
    first_read = view.channels_before
    opened_inside = len(recent) == len(history) and first_read is not None and history[0].at != first_read
    before = 0 if opened_inside else _unsettled(recent[0].value)
    nacked = _unsettled(recent[-1].value) - before - max(known)
    published = count(recent[-1].value.stats, "publish") - (
        0 if opened_inside else count(recent[0].value.stats, "publish")
    )
    return nacked if nacked >= max(2.0, view.thresholds.publishers.overflow_share * published) else 0


def _unsettled(channel: Channel) -> int:
    return count(channel.stats, "publish") - count(channel.stats, "confirm")


def _publishers_without_confirms(view: View, vhost: str) -> tuple[Channel, ...]:
    """Channels that publish without confirms: their refused messages are lost silently."""
    found = []
    for channel in view.channels:
        if channel.vhost == vhost and channel.confirm is False and not channel.transactional and channel.stats.publish:
            recent = last(view.channel_history(channel.name), view.thresholds.interval)
            if span(recent) > 0 and delta(recent, "publish") > 0:
                found.append(channel)
    return tuple(sorted(found, key=lambda channel: channel.name))

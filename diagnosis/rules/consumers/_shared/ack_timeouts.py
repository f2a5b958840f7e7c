"""Finds consumers that reach the acknowledgement timeout or will, for consumer-ack-timeout.

A consumer that acknowledges can reach it too: a message that it takes now waits behind all that it holds, by Little's
law for unacknowledged messages divided by acknowledgements per second.

Up to 4.2 the broker closes the whole channel (406), whatever the queue type; from 4.3 on only quorum queues have the
timeout, and the broker cancels the consumer. The broker checks once a minute.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout; seen on 3.10, 4.0 and 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.snapshot import Channel, Consumer, Queue, Snapshot
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.routes import dead_letters_from
from diagnosis.rules.consumers._shared.holders import is_stale
from diagnosis.rules.consumers._shared.standstill import held, idle_since, unmoved, unsettled
from diagnosis.series import count, delta, span, stretch


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueConsumer:
    """A consumer that has held messages for a long time.

    Attributes:
        unacked: messages on its channel.
        idle_seconds: how long it has held them at least.
        timeout_seconds: the acknowledgement timeout.
        timeout_reported: the broker reports that timeout; otherwise it is RabbitMQ's default.
        works: its channel has acknowledged messages, so a job may need the time; otherwise it hangs.
        ended: the broker has already acted.
        pace: acknowledgements per second, at most, of a consumer that acknowledges and holds more than it can settle
            within the timeout; `idle_seconds` is then how long a message waits that it takes now. None for one that
            holds messages without acknowledging.
        acked: acknowledgements from which the pace was counted.
    """

    queue: Queue
    consumer: Consumer
    unacked: int
    idle_seconds: float
    timeout_seconds: float
    timeout_reported: bool
    works: bool
    ended: bool
    pace: float | None = None
    acked: int = 0


@dataclass(frozen=True, slots=True)
class ReturnedDeliveries:
    """Deliveries of a queue that came back with the end of their consumers, after the timeout at the earliest.

    Attributes:
        messages: how many at least; a consumer that came and went between two readings is not seen.
        rounds: how many times messages were delivered and came back. Once looks like a deployment.
        seconds: from the reading before the first of them until now.
        acked: acknowledgements, if fewer messages have left the queue, so that some of them were late; else 0.
        left: how many messages have left the queue since its counters began, at most.
    """

    messages: int
    rounds: int
    seconds: float
    acked: int
    left: int


def returned_deliveries(view: View, queue: Queue, timeout_seconds: float) -> ReturnedDeliveries | None:
    """Return what came back to a queue because of its acknowledgement timeout; None if nothing was seen to."""
    history = view.history(queue)
    messages, rounds, risen, first, held_since = 0, 0, True, None, history[0].at
    for older, newer in pairwise(history):
        before, after = older.value.messages_unacked or 0, newer.value.messages_unacked or 0
        fewer = (newer.value.consumers or 0) < (older.value.consumers or 0)
        # Rejected messages would leave the queue.
        back = fewer and after < before and not delta((older, newer), "ack")
        if back and (newer.value.messages or 0) >= (older.value.messages or 0):
            if newer.at.since(held_since) >= timeout_seconds:
                messages, rounds, risen, first = messages + before - after, rounds + risen, False, first or older.at
            continue
        risen = risen or after > before
        if before == 0 or delta((older, newer), "ack"):
            held_since = older.at
    if first is None:
        return None
    tail = history[-_LATEST:]
    # The number of messages is up to 5 s older than the publishes, so no more than this has left a queue that grows.
    left = min(count(seen.value.stats, "publish") - (seen.value.messages or 0) for seen in tail)
    acked = count(tail[0].value.stats, "ack")
    late = acked > left >= 0 and not dead_letters_from(view, queue)
    return ReturnedDeliveries(messages, rounds, history[-1].at.since(first), acked if late else 0, left)


_LATEST = 4
"""Readings from which the fewest messages that left are taken; acknowledgements are those of the first of them."""


def overdue_consumers(view: View) -> tuple[OverdueConsumer, ...]:
    """Return the consumers that are past or near the acknowledgement timeout."""
    return per_view(view, _overdue)


def _overdue(view: View) -> tuple[OverdueConsumer, ...]:
    over = (*_ended(view), *_cancelled(view))
    known = {each.consumer.channel_name for each in over}
    found = (*over, *(each for each in _near(view) if each.consumer.channel_name not in known))
    known = {each.consumer.channel_name for each in found}
    return (*found, *(each for each in _ahead(view) if each.consumer.channel_name not in known))


def _near(view: View) -> Iterator[OverdueConsumer]:
    readings = view.window.readings("channels")
    if not readings or not view.fresh("channels"):
        return
    now = readings[-1].at.wall
    idle = {each.name: each for each in view.channels if each.messages_unacked and each.idle_since is not None}
    if not idle:
        return
    for consumer in view.every_consumer:
        channel = idle.get(consumer.channel_name or "")
        queue = view.queue(consumer.vhost, consumer.queue) if channel else None
        if channel is None or queue is None or consumer.ack_required is False:
            continue
        waits = consumer.active is False and queue.type != "stream"
        if waits or (held(queue) < held(channel) and is_stale(view, channel)):
            # The broker took its messages back, and the statistics of its channel still count them.
            continue
        found = _judge(view, queue, consumer, channel, now, since=_held_since(view, queue, channel))
        near = view.limits(queue).consumers.ack_timeout_near
        if found is not None and found.idle_seconds >= near * found.timeout_seconds:
            yield found


def _ahead(view: View) -> Iterator[OverdueConsumer]:
    """Yield consumers that acknowledge, and hold more than they can acknowledge within the timeout."""
    if not view.fresh("channels"):
        return
    for queue in view.queues:
        if (queue.messages_unacked or 0) < _FEWEST or queue.type == "stream" or not queue.stats.ack:
            continue
        series = view.history(queue)
        acked, seconds = delta(series, "ack"), span(series)
        # With several queues on one channel, nobody knows which of them holds what.
        alone = [
            (path.consumer, path.channel)
            for path in view.links(queue)
            if path.channel and path.consumer.ack_required is not False and view.queues_served(path.channel.name) == 1
        ]
        total = sum(channel.stats.ack or 0 for _, channel in alone)
        if acked < 1 or seconds < _PACE_SECONDS or not total:
            continue
        for consumer, channel in alone:
            # Channels are remembered for less than a minute, so the pace is that of the queue, by their shares. One
            # more than was counted may have been acknowledged by the end: so this is a lower bound of the wait.
            pace = (acked + 1) / seconds * (channel.stats.ack or 0) / total
            least = min(seen.value.messages_unacked or 0 for seen in view.channel_history(channel.name))
            timeout = _timeout(view, queue, consumer)
            if timeout is not None and pace and least >= _FEWEST and least / pace >= timeout[0]:
                yield OverdueConsumer(
                    queue=queue,
                    consumer=consumer,
                    unacked=least,
                    idle_seconds=least / pace,
                    timeout_seconds=timeout[0],
                    timeout_reported=timeout[1],
                    works=True,
                    ended=False,
                    pace=pace,
                    acked=acked,
                )


_PACE_SECONDS = 120.0
"""Seconds for which acknowledgements are counted before a pace is known: a consumer may be slow when it starts."""
_FEWEST = 2
"""A consumer that holds one message at a time is judged by how long it holds it."""


def _held_since(view: View, queue: Queue, channel: Channel) -> float | None:
    """Return since when a channel holds what it holds: since it is idle, or since nothing of its queue was settled."""
    known = [idle_since(stretch(view.channel_history(channel.name), unmoved))]
    if all(link.channel is channel for link in view.links(queue)):
        known.append(unsettled(view.history(queue))[0].at.wall)
    return min((each for each in known if each is not None), default=None)


def _ended(view: View) -> Iterator[OverdueConsumer]:
    """Yield consumers that were idle with messages when last seen, and past their timeout when they were gone."""
    latest = view.window.latest
    if latest is None or not view.fresh("consumers"):
        return
    recent = [each for each in view.window.snapshots if each.channels.value is not None and each.consumers.value]
    if latest.consumers.value is not None and (not recent or recent[-1] is not latest):
        recent.append(latest)
    connected = {each.name for each in view.connections}
    seen: set[tuple[str, str, str, str]] = set()
    for older, newer in reversed(list(pairwise(recent))):
        holding = {each.name: each for each in older.channels.value or () if each.messages_unacked and each.idle_since}
        if not holding:
            continue
        left = {_identity(each) for each in newer.consumers.value or () if each.channel_name in holding}
        now = {each.name: each for each in newer.channels.value or () if each.name in holding}
        for consumer in older.consumers.value or ():
            channel = holding.get(consumer.channel_name or "")
            if channel is None:
                continue
            identity, queue = _identity(consumer), view.queue(consumer.vhost, consumer.queue)
            if queue is None or identity in seen:
                continue
            # An application that consumes again at once may use the same names.
            if identity in left and not _requeued(channel, now.get(channel.name), older, newer, queue):
                continue
            at = newer.consumers.at
            found = None if at is None else _judge(view, queue, consumer, channel, at.wall, ended=True)
            if found is None or found.idle_seconds < found.timeout_seconds:
                continue
            # A client that ended closed its connection too; the timeout leaves the connection open.
            if _connection(consumer, older) in connected:
                seen.add(identity)
                yield found


def _cancelled(view: View) -> Iterator[OverdueConsumer]:
    """Yield consumers that are listed with messages on their channel while their queue has neither.

    From 4.3 on the queue cancels the consumer, and its channel goes on counting both until the client does something.
    """
    if not view.fresh("channels"):
        return
    now = view.window.readings("channels")[-1].at.wall
    for queue in view.queues:
        listed = view.links(queue)
        if queue.consumers is None or queue.consumers >= len(listed):
            continue
        channels = {link.channel.name: link.channel for link in listed if link.channel and link.channel.idle_since}
        counted = sum(each.messages_unacked or 0 for each in channels.values())
        readings = view.history(queue)[-2:] if counted else ()
        gone = all(
            it.value.consumers is not None
            and it.value.messages_unacked is not None
            and it.value.consumers < len(listed)
            and it.value.messages_unacked < counted
            for it in readings
        )
        if len(readings) < 2 or not gone:
            continue
        for link in listed:
            channel = channels.get(link.consumer.channel_name or "")
            if channel is None or not channel.messages_unacked or view.queues_served(channel.name) != 1:
                continue
            found = _judge(view, queue, link.consumer, channel, now, ended=True)
            if found is not None and found.idle_seconds >= found.timeout_seconds:
                yield found


def _requeued(channel: Channel, now: Channel | None, older: Snapshot, newer: Snapshot, queue: Queue) -> bool:
    """Whether the messages of a channel were redelivered without an acknowledgement in between."""
    if now is None or now.idle_since == channel.idle_since:
        return False
    before, after = (next((q for q in each.queues.value or () if q.key == queue.key), None) for each in (older, newer))
    if before is None or after is None:
        return False
    again = (after.stats.redeliver or 0) - (before.stats.redeliver or 0)
    return again > 0 and (after.stats.ack or 0) == (before.stats.ack or 0)


def _identity(consumer: Consumer) -> tuple[str, str, str, str]:
    return (consumer.vhost, consumer.queue, consumer.channel_name or "", consumer.tag)


def _connection(consumer: Consumer, snapshot: Snapshot) -> str | None:
    if consumer.connection_name:
        return consumer.connection_name
    channels = snapshot.channels.value or ()
    return next((each.connection_name for each in channels if each.name == consumer.channel_name), None)


def _judge(
    view: View,
    queue: Queue,
    consumer: Consumer,
    channel: Channel,
    now: float,
    *,
    since: float | None = None,
    ended: bool = False,
) -> OverdueConsumer | None:
    timeout, since = _timeout(view, queue, consumer), channel.idle_since if since is None else since
    if timeout is None or since is None:
        return None
    return OverdueConsumer(
        queue=queue,
        consumer=consumer,
        unacked=channel.messages_unacked or 0,
        idle_seconds=now - since,
        timeout_seconds=timeout[0],
        timeout_reported=timeout[1],
        works=bool(channel.stats.ack),
        ended=ended,
    )


def _timeout(view: View, queue: Queue, consumer: Consumer) -> tuple[float, bool] | None:
    """Return the acknowledgement timeout of a consumer, and whether the broker reports it; None without one."""
    version = view.version
    if version is None or (version >= (4, 3) and queue.type != "quorum"):
        return None
    timeout, reported = consumer.consumer_timeout_ms, True
    if timeout is None:
        own = queue.setting("consumer-timeout")
        timeout, reported = (own, True) if isinstance(own, int) and version >= (3, 12) else (None, False)
    if timeout is None and version >= (4, 0):
        return None
    seconds = view.limits(queue).consumers.ack_timeout_default if timeout is None else timeout / 1000
    return (seconds, reported) if seconds > 0 else None

"""Deliveries that are held for long, and what the broker did about it: the search behind consumer-ack-timeout.

Up to 4.2 the broker closes the whole channel (406), whatever the queue; from 4.3 on only quorum queues have a timeout,
and it is the consumer that is cancelled. It looks once a minute.
Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout; seen on 3.10, 4.0 and 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.snapshot import Channel, Consumer, Queue, Snapshot
from diagnosis.contract import View
from diagnosis.kept import kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A consumer that held messages for long.

    Attributes:
        held: messages on its channel.
        idle: seconds that its channel is idle, and so holds them at least.
        timeout: seconds that the broker allows; `told` where it says so itself, else its default.
        ended: the broker has acted.
    """

    queue: Queue
    consumer: Consumer
    held: int
    idle: float
    timeout: float
    told: bool
    ended: bool


def overdue(view: View) -> tuple[Overdue, ...]:
    """All such consumers."""
    return kept(view, _Overdue).found


class _Overdue:
    def __init__(self, view: View) -> None:
        self.found = (*_ended(view), *_near(view))


def _near(view: View) -> Iterator[Overdue]:
    readings = view.window.readings("channels")
    if not readings or not view.fresh("channels"):
        return
    now = readings[-1].at.wall
    idle = {each.name: each for each in view.channels if each.messages_unacked and each.idle_since is not None}
    if not idle:
        return
    queues = {queue.key: queue for queue in view.queues}
    for consumer in view.part("consumers"):
        channel, queue = idle.get(consumer.channel_name or ""), queues.get((consumer.vhost, consumer.queue))
        if channel is None or queue is None or consumer.ack_required is False:
            continue
        found = _judge(view, queue, consumer, channel, now)
        near = view.limits(queue).consumers.ack_timeout_near
        if found is not None and found.idle >= near * found.timeout:
            yield found


def _ended(view: View) -> Iterator[Overdue]:
    """Consumers that were idle with messages when they were seen last, and past their time when they were not."""
    latest = view.window.latest
    if latest is None or not view.fresh("consumers"):
        return
    recent = [each for each in view.window.snapshots if each.channels.value is not None and each.consumers.value]
    if latest.consumers.value is not None and (not recent or recent[-1] is not latest):
        recent.append(latest)
    connected = {each.name for each in view.connections}
    queues = {queue.key: queue for queue in view.queues}
    seen: set[tuple[str, str, str, str]] = set()
    for older, newer in reversed(list(pairwise(recent))):
        held = {each.name: each for each in older.channels.value or () if each.messages_unacked and each.idle_since}
        if not held:
            continue
        left = {_who(each) for each in newer.consumers.value or ()}
        now = {each.name: each for each in newer.channels.value or ()}
        for consumer in older.consumers.value or ():
            who = _who(consumer)
            channel, queue = held.get(consumer.channel_name or ""), queues.get((consumer.vhost, consumer.queue))
            if channel is None or queue is None or who in seen:
                continue
            # An application that comes back at once may have the same names as before.
            if who in left and not _taken_back(channel, now.get(channel.name), older, newer, queue):
                continue
            at = newer.consumers.at
            found = None if at is None else _judge(view, queue, consumer, channel, at.wall, ended=True)
            # A client that went took its connection along; the broker leaves it.
            if found is not None and found.idle >= found.timeout and _connection(consumer, older) in connected:
                seen.add(who)
                yield found


def _taken_back(channel: Channel, now: Channel | None, older: Snapshot, newer: Snapshot, queue: Queue) -> bool:
    """Whether what a channel held was delivered again, without an acknowledgement in between."""
    if now is None or now.idle_since == channel.idle_since:
        return False
    before, after = (next((q for q in each.queues.value or () if q.key == queue.key), None) for each in (older, newer))
    if before is None or after is None:
        return False
    again = (after.stats.redeliver or 0) - (before.stats.redeliver or 0)
    return again > 0 and (after.stats.ack or 0) == (before.stats.ack or 0)


def _who(consumer: Consumer) -> tuple[str, str, str, str]:
    return (consumer.vhost, consumer.queue, consumer.channel_name or "", consumer.tag)


def _connection(consumer: Consumer, snapshot: Snapshot) -> str | None:
    if consumer.connection_name:
        return consumer.connection_name
    channels = snapshot.channels.value or ()
    return next((each.connection_name for each in channels if each.name == consumer.channel_name), None)


def _judge(
    view: View, queue: Queue, consumer: Consumer, channel: Channel, now: float, *, ended: bool = False
) -> Overdue | None:
    version = view.version
    if version is None or (version >= (4, 3) and queue.type != "quorum"):
        return None
    timeout, told = consumer.consumer_timeout_ms, True
    if timeout is None:
        own = queue.setting("consumer-timeout")
        timeout, told = (own, True) if isinstance(own, int) and version >= (3, 12) else (None, False)
    if timeout is None and version >= (4, 0):
        return None
    seconds = view.limits(queue).consumers.ack_timeout_default if timeout is None else timeout / 1000
    if seconds <= 0 or channel.idle_since is None:
        return None
    return Overdue(
        queue=queue,
        consumer=consumer,
        held=channel.messages_unacked or 0,
        idle=now - channel.idle_since,
        timeout=seconds,
        told=told,
        ended=ended,
    )

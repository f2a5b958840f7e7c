"""Whose consumer a queue lacks, and what proves that no deployment took it.

A deployment closes the channels of its consumers and opens others. An open channel that consumed from this queue, and
has no consumer now, is none: its client cancelled the consumer, or the broker did with the queue. A shovel that is gone
from the list of shovels does not come back by itself, either.

Lists of consumers show which queue a channel consumed from. What a channel did before these is judged by times: it lost
its consumer when it was last active, or before. So it is not of a queue that was consumed later, nor of one that had
been without a consumer while the channel was active. If several queues remain, it is nobody's.
"""

from collections import defaultdict
from dataclasses import dataclass

from ackscope.snapshot import Channel, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.former_consumers import FormerConsumer
from diagnosis.memo import per_view
from diagnosis.purpose import had_consumer, was_consumed
from diagnosis.rules.cluster._shared.link_flow import SHOVEL, link_queues
from diagnosis.rules.consumers._shared.comings import was_cancelled
from diagnosis.rules.consumers._shared.standstill import idle_since
from diagnosis.series import delta, piled_up_seconds, stretch, without_consumers
from diagnosis.window import Timestamped

_TOGETHER = 15.0
"""Seconds by which two readings of one event may be apart: two lists of consumers, or a list and statistics."""
_RENEWED = 65.0
"""Seconds after which `idle_since` is exact: some versions renew it once a minute, though nothing happens."""
_RATE_ERROR = 0.1
"""Share by which the time in which a backlog arrived is wrong, because its rate is."""

TAKE_COUNTERS = ("deliver_get", "deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack")
"""Counters that rise when a client takes messages, or tries to."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostConsumers:
    """The consumers that a queue had last.

    Attributes:
        cancelled: open channels that consumed from it and have no consumer now.
        seen: lists of consumers showed it; else no other queue explains these channels.
        by_broker: the queue was deleted and declared again since then.
        shovels: names of its shovels that are gone.
        gone: names of other clients that consumed last, and are not connected.
    """

    cancelled: tuple[Channel, ...] = ()
    seen: bool = False
    by_broker: bool = False
    shovels: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def proves_no_deployment(self) -> bool:
        """Whether these consumers will not come back by themselves."""
        return self.by_broker or (bool(self.shovels) and not self.gone and not self.cancelled)


def lost_consumers(view: View, queue: Queue) -> LostConsumers:
    """Return who consumed from a queue that has no consumer; several rules and texts ask for it."""
    found = per_view(view, _found)
    if queue.key not in found:
        found[queue.key] = _lost_consumers(view, queue)
    return found[queue.key]


def took_messages(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether a client took messages between two readings, or tried to."""
    return any(delta((older, newer), counter) > 0 for counter in TAKE_COUNTERS)


def _found(_view: View) -> dict[Key, LostConsumers]:
    """Return the results of `lost_consumers` by queue, none at first."""
    return {}


def _lost_consumers(view: View, queue: Queue) -> LostConsumers:
    former = per_view(view, _former).get(queue.key, [])
    last = [each for each in former if former[-1].gone.since(each.gone) <= _TOGETHER]
    without = {each.name: each for each in per_view(view, _without_consumer).get(queue.vhost, ())}
    seen = {name: without[name] for each in last if (name := each.consumer.channel_name) in without}
    cancelled = tuple(seen.values()) or _by_elimination(view, queue)
    there = {each.name for each in view.every_connection} if view.fresh("connections") else None
    names = {
        name
        for each in last
        if there is not None and each.connection is not None and each.connection.name not in there
        if (name := client_name(each.connection)) is not None
    }
    shovels = {each for each in names if each.startswith(SHOVEL)}
    return LostConsumers(
        cancelled=cancelled,
        seen=bool(seen),
        by_broker=bool(cancelled) and _was_replaced(view, queue),
        shovels=tuple(sorted(_gone_shovels(view, queue) | _unlisted(view, shovels))),
        gone=tuple(sorted(names - shovels)),
    )


def _former(view: View) -> dict[Key, list[FormerConsumer]]:
    found: dict[Key, list[FormerConsumer]] = defaultdict(list)
    for each in view.window.former:
        found[each.key].append(each)
    return found


def _without_consumer(view: View) -> dict[str | None, list[Channel]]:
    """Return the open channels of each virtual host all of whose consumers were cancelled.

    The list of consumers may be newer than that of channels.
    """
    found: dict[str | None, list[Channel]] = defaultdict(list)
    for channel in filter(was_cancelled, view.channels):
        if not view.queues_served(channel.name):
            found[channel.vhost].append(channel)
    return found


def _was_replaced(view: View, queue: Queue) -> bool:
    """Return whether a queue that had a consumer was deleted and declared again, and has had none since."""
    ended = [each for each in view.ended_queues(queue.vhost) if each.queue.key == queue.key and each.queue.consumers]
    return bool(ended) and not had_consumer(view.history(queue))


def _gone_shovels(view: View, queue: Queue) -> set[str]:
    """Return the shovels that took from a queue last and are no longer listed."""
    if not view.fresh("links"):
        return set()
    readings = sorted((*view.window.trend("links"), *view.window.readings("links")), key=lambda seen: seen.at.mono)
    consumed = [seen.at.mono for seen in view.listings(queue) if seen.value.consumers]
    now = {each.name for each in view.bridges}
    found: dict[str, float] = {}
    for seen in readings:
        for each in seen.value:
            if each.kind == "shovel" and each.name not in now and queue.key in link_queues(view, each):
                found[each.name] = seen.at.mono
    # Where the queue was consumed later, its last consumer was another one.
    gone = {name: min(seen.at.mono for seen in readings if seen.at.mono > last) for name, last in found.items()}
    return {name for name, at in gone.items() if not consumed or consumed[-1] <= at + _TOGETHER}


def _unlisted(view: View, clients: set[str]) -> set[str]:
    """Return the names of shovels by their clients, without those that are listed: one that restarts comes back."""
    if not view.fresh("links"):
        return set()
    return {each.removeprefix(SHOVEL) for each in clients} - {each.name for each in view.bridges}


def _by_elimination(view: View, queue: Queue) -> tuple[Channel, ...]:
    """Return the channels that may have consumed from this queue, and from no other one."""
    claims = per_view(view, _claims).get(queue.vhost, {})
    return tuple(channel for channel, keys in claims.values() if keys == [queue.key])


def _claims(view: View) -> dict[str | None, dict[str, tuple[Channel, list[Key]]]]:
    """Return by virtual host the channels whose queue no list of consumers showed, and the queues that it may be."""
    known = {each.consumer.channel_name for each in view.window.former}
    found: dict[str | None, dict[str, tuple[Channel, list[Key]]]] = {}
    for vhost, channels in per_view(view, _without_consumer).items():
        unknown = [each for each in channels if each.name not in known]
        if unknown:
            lacking = [
                each for each in view.queues if each.vhost == vhost and each.consumers == 0 and each.messages_ready
            ]
            found[vhost] = {
                each.name: (each, [queue.key for queue in lacking if _may_be_of(view, each, queue)]) for each in unknown
            }
    return found


def _may_be_of(view: View, channel: Channel, queue: Queue) -> bool:
    """Return whether the times of a channel and of a queue allow that the channel consumed from it last."""
    ended = stretch(view.channel_history(channel.name), lambda older, _: was_cancelled(older.value))
    active = idle_since(ended)
    consumed = [seen.at.wall for seen in view.listings(queue) if seen.value.consumers]
    if active is not None and consumed and consumed[-1] > active + _TOGETHER:
        return False
    exact = active is not None and ended[-1].at.wall - active > _RENEWED
    if not was_consumed(queue) and not consumed and not _was_replaced(view, queue):
        return exact and active is not None and _began_at(view, queue, active)
    history, opened = view.history(queue), view.channel_history(channel.name)
    idle = stretch(history, lambda older, newer: without_consumers(older, newer) and not took_messages(older, newer))
    since = idle[0].at.wall
    if any(seen.value.consumer_count and seen.at.wall > since + _TOGETHER for seen in opened):
        return False
    if len(idle) == len(history):
        since = min(since, idle[-1].at.wall - (1 - _RATE_ERROR) * piled_up_seconds(idle))
    return not exact or active is None or active <= since + _TOGETHER


def _began_at(view: View, queue: Queue, active: float) -> bool:
    """Return whether a queue got its first message at a time, if all of its messages are still there."""
    history = view.history(queue)
    lasts = piled_up_seconds(history)
    if not lasts or (queue.stats.publish or 0) > (queue.messages_ready or 0) + _RATE_ERROR * (queue.stats.publish or 0):
        return False
    return abs(history[-1].at.wall - lasts - active) <= _TOGETHER + _RATE_ERROR * lasts

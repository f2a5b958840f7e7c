"""Who is refused by a full queue: publishers whose own counters fit what the queue refused in the same time.

A channel does not show where it publishes to. In confirm mode it shows how much was nacked: published, and neither
confirmed nor unconfirmed. Such a channel is named where this fits the refusals of the queue; any other is a bystander.
Unroutable messages are confirmed, so they are not included.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.routes import targets
from diagnosis.rules.publishers._shared.overflow import full_readings, refused
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series

_REFRESH = 4.0
"""The broker refreshes its statistics every 5 s."""
_ENOUGH = 0.9
"""Share of the refusals of a queue from which on they count as explained."""
_NEAR = 1.25
"""How much two rates that belong together may differ."""
_FITS = 1.5
"""How much larger the rate of a channel may be than that of its queue, as both are read at different times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NackedPublisher:
    """A channel with nacked publishes, to some queue of its virtual host: at least `nacked` in `seconds`."""

    channel: Channel
    connection: Connection | None
    nacked: int
    seconds: float

    @property
    def client(self) -> str:
        """The application by the name of its connection."""
        return client_name(self.connection, self.channel.connection_name) or "unknown connection"

    @property
    def rate(self) -> float:
        """Messages nacked per second."""
        return self.nacked / max(self.seconds, 1.0)


def nacked_publishers(view: View) -> tuple[NackedPublisher, ...]:
    """Channels in confirm mode that recently published more than is confirmed or unconfirmed, most first."""
    return per_view(view, _nacked_publishers)


def fitting(view: View, queue: Queue) -> tuple[NackedPublisher, ...]:
    """Return the publishers whose nacks together fit the refusals of a queue; none if that is ambiguous.

    One that fits another full queue of the virtual host better is left out, and so are small ones once the larger ones
    explain the refusals.

    A client that consumes from the full queue is left out as well if another one fits: it does not empty that queue
    because another queue refuses what it publishes. If several fit equally, those are named that no other full queue
    can have refused.
    """
    rate = per_view(view, _refused_rates).get(queue.vhost, {}).get(queue.name, 0.0)
    possible = per_view(view, _candidates).get(queue.key, [])
    if sum(each.rate for each in possible) > _FITS * rate + 1.0:
        possible = [each for each in possible if each.rate * _FITS + 1.0 >= rate]
        if len(possible) > 1:
            return ()
    found: list[NackedPublisher] = []
    for each in possible:
        if found and _explain(found, rate):
            # Another one of the same rate explains the refusals as well.
            return () if each.rate >= _ENOUGH * found[0].rate else tuple(found)
        found.append(each)
    return tuple(found)


def also_stored(view: View, queue: Queue) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the exchanges that feed a queue and others together, and those other queues that took messages recently.

    A publish that one of them refuses is nacked, although the others stored it.
    """
    exchanges: set[str] = set()
    others: set[str] = set()
    kinds = {exchange.key: exchange for exchange in view.exchanges}
    for binding in view.bindings or ():
        if (binding.vhost, binding.destination) != queue.key or binding.destination_type != "queue":
            continue
        exchange = kinds.get((binding.vhost, binding.source))
        if exchange is None or not exchange.stats.publish_in:
            continue
        key = binding.routing_key if exchange.type == "direct" else None
        reached = targets(view, binding.vhost, binding.source, key) or frozenset()
        here = [view.queue(*place) for place in sorted(reached - {queue.key})]
        took = {each.name for each in here if each is not None and each.stats.publish and view.moved(each, "publish")}
        if took:
            exchanges.add(binding.source)
            others |= took
    return tuple(sorted(exchanges)), tuple(sorted(others))


def queues_held_up(view: View, refused: Sequence[NackedPublisher]) -> tuple[Queue, ...]:
    """Return the queues with unacknowledged messages that refused publishers consume from."""
    places = {place for each in refused for place in view.queues_consumed(each.channel.connection_name or "")}
    found = (view.queue(*place) for place in sorted(places))
    return tuple(each for each in found if each is not None and each.messages_unacked)


def _candidates(view: View) -> dict[tuple[str, str], list[NackedPublisher]]:
    """Return the publishers that each full queue may have refused; one that only one queue fits is not another's."""
    found: dict[tuple[str, str], list[NackedPublisher]] = {}
    for vhost, rates in per_view(view, _refused_rates).items():
        full = {key for key in per_view(view, _full_queues) if key[0] == vhost}
        near = {(vhost, name): _near(view, vhost, name, rates) for name in rates}
        for place, every in near.items():
            others = [each for each in every if place not in _consumed(view, each)] or every
            only_here = [each for each in others if full - _consumed(view, each) <= {place}]
            found[place] = only_here if _explain(only_here, rates[place[1]]) else others
        while _assign_single({place: found[place] for place in near}, rates):
            pass
    return found


def _consumed(view: View, publisher: NackedPublisher) -> frozenset[tuple[str, str]]:
    return view.queues_consumed(publisher.channel.connection_name or "")


def _explain(publishers: Sequence[NackedPublisher], rate: float) -> bool:
    """Return whether the nacks of publishers are nearly all refusals of a queue that refuses `rate` messages/s."""
    return sum(each.rate for each in publishers) >= _ENOUGH * rate


def _near(view: View, vhost: str, name: str, rates: dict[str, float]) -> list[NackedPublisher]:
    """Return the publishers whose nacks may be refusals of a queue, by their rate."""
    rate = rates[name]
    others = [other for queue, other in rates.items() if queue != name]
    return [
        each
        for each in nacked_publishers(view)
        if each.channel.vhost == vhost
        and each.rate <= _FITS * rate + 1.0
        and not any(_closer(each.rate, other, rate) for other in others)
    ]


def _assign_single(found: dict[tuple[str, str], list[NackedPublisher]], rates: dict[str, float]) -> bool:
    """Remove a publisher that alone explains one queue from the others that have more; return whether one was."""
    for (_, name), candidates in found.items():
        if len(candidates) != 1 or candidates[0].rate < _ENOUGH * rates[name]:
            continue
        for others in found.values():
            if len(others) > 1 and candidates[0] in others:
                others.remove(candidates[0])
                return True
    return False


def _closer(rate: float, other: float, own: float) -> bool:
    """Return whether a rate is nearly that of another queue, and further from that of this one."""
    return other / _NEAR <= rate <= other * _NEAR and abs(log(rate / other)) < abs(log(rate / own)) if own else True


def _refused_rates(view: View) -> dict[str, dict[str, float]]:
    """Return the messages that each full queue refuses a second, by virtual host and name."""
    found: dict[str, dict[str, float]] = {}
    for (vhost, name), recent in per_view(view, _full_queues).items():
        number = refused(recent)
        if number:
            found.setdefault(vhost, {})[name] = number / max(span(recent), 1.0)
    return found


def _full_queues(view: View) -> dict[tuple[str, str], Series[Queue]]:
    """Return the latest readings of the queues that refuse publishes and are full."""
    readings = {queue.key: full_readings(view, queue) for queue in view.queues}
    return {key: recent for key, recent in readings.items() if recent}


def _nacked_publishers(view: View) -> tuple[NackedPublisher, ...]:
    found = []
    for channel in view.channels:
        if channel.confirm is not True or not channel.stats.publish:
            continue
        each = _nacked(view, channel)
        if each is not None:
            found.append(each)
    return tuple(sorted(found, key=lambda each: (-each.nacked, each.channel.name)))


def _nacked(view: View, channel: Channel) -> NackedPublisher | None:
    """Return a channel with its minimum number of recently nacked publishes; None without any.

    Counters are current but `messages_unconfirmed` is up to 5 s old. So the largest number of unconfirmed messages is
    subtracted, and the rest must exceed a share of what was published: a few messages in flight look like a few nacks.
    Nacks also never become fewer: of a channel with many messages in flight, the difference rises and falls.
    """
    history = view.channel_history(channel.name)
    recent = last(history, view.thresholds.interval)
    unconfirmed = [seen.value.messages_unconfirmed for seen in recent]
    known = [number for number in unconfirmed if number is not None]
    if not known or len(known) < len(unconfirmed) or _falls(recent):
        return None
    first_read = view.channels_before
    opened_inside = len(recent) == len(history) and first_read is not None and history[0].at != first_read
    before = 0 if opened_inside else _unsettled(recent[0].value)
    nacked = _unsettled(recent[-1].value) - before - max(known)
    published = count(recent[-1].value.stats, "publish") - (
        0 if opened_inside else count(recent[0].value.stats, "publish")
    )
    if nacked < max(2.0, view.thresholds.publishers.overflow_share * published):
        return None
    earlier = [seen.at for seen in view.window.readings("channels") if seen.at.since(history[0].at) < 0]
    unseen = history[0].at.since(earlier[-1]) if opened_inside and earlier else 0.0
    return NackedPublisher(
        channel=channel,
        connection=view.connection(channel.connection_name),
        nacked=nacked,
        seconds=span(recent) + unseen,
    )


def _falls(history: Series[Channel]) -> bool:
    """Return whether the unsettled publishes of a channel ever became fewer, or stayed while it published."""
    for older, newer in pairwise(history):
        grown = _unsettled(newer.value) - _unsettled(older.value)
        published = delta((older, newer), "publish")
        if grown < 0 or (grown == 0 and published > 0 and newer.at.since(older.at) >= _REFRESH):
            return True
    return False


def _unsettled(channel: Channel) -> int:
    return count(channel.stats, "publish") - count(channel.stats, "confirm")

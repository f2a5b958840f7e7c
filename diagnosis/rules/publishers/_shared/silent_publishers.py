"""Who may publish without confirms to a full queue that refuses: a refusal of it goes unnoticed.

No counter shows such a refusal by client. But the queue counts all that is published to it, refused or not. So the
rates of its publishers add up to that of the queue; one client that alone publishes as much is the one. What others
publish arrives in other queues, or goes through exchanges that do not lead here.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ackscope.snapshot import Channel, Queue
from diagnosis.contract import View
from diagnosis.exchange_publishes import published_to
from diagnosis.rules.consumers._shared.client_publishes import (
    ClientPublishes,
    client_publishes,
    owner,
    since_first_reading,
)
from diagnosis.rules.publishers._shared.away_queues import exchanges_aside, exchanges_to
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in
from diagnosis.series import delta, last, readings_since, span

_FITS = 1.5
"""How much larger the rate of a channel may be than that of its queue, as both are read at different times."""
_ROUND = 1.0
"""Seconds between the readings of queues and channels in one round."""

_MOST_UNSURE = 0.3
"""Part of a rate by which two may differ at most, in a short look too."""

_Rates = dict[str | None, float]


@dataclass(frozen=True, slots=True)
class SilentPublishers:
    """Channels without confirms, or transactions whose refusal does not show, that may publish to a full queue.

    Attributes:
        one_of: whether only some of them do, and it is not known which.
    """

    channels: tuple[Channel, ...] = ()
    one_of: bool = False


def silent_publishers(view: View, queue: Queue, publish_rate: float) -> SilentPublishers:
    """Return the channels that may have published what a full queue refused, as far as counters separate them.

    A transaction fails if a classic queue refuses one of its messages (406, partial tx completion). The refusal of a
    quorum queue does not show in it (seen on 3.10.8 and 4.3.6; rabbitmq-server issue 8966).

    Args:
        view: the view that is being judged.
        queue: the full queue.
        publish_rate: messages per second that are published to it, also refused ones.
    """
    channels = _possible(view, queue, publish_rate)
    clients = {channel.name: owner(view, channel.connection_name) for channel in channels}
    named, one_of = _named(view, queue, set(clients.values()), publish_rate)
    return SilentPublishers(tuple(channel for channel in channels if clients[channel.name] in named), one_of)


def _possible(view: View, queue: Queue, publish_rate: float) -> list[Channel]:
    """Return the channels without confirms that publish no more than a queue gets, to an exchange that leads to it."""
    aside = exchanges_aside(view, queue.vhost, [queue.name])
    found = []
    for channel in view.channels:
        if channel.vhost != queue.vhost or channel.confirm is not False or not channel.stats.publish:
            continue
        if channel.transactional and queue.type != "quorum":
            continue
        places = published_to(view).get(channel.name)
        if places and places <= aside:
            continue
        recent = last(view.channel_history(channel.name), view.thresholds.interval)
        published = delta(recent, "publish")
        if span(recent) > 0 and 0 < published / span(recent) <= _FITS * publish_rate + 1.0:
            found.append(channel)
    return sorted(found, key=lambda channel: channel.name)


def _named(
    view: View, queue: Queue, clients: Collection[str | None], publish_rate: float
) -> tuple[Collection[str | None], bool]:
    """Return those of some clients that may publish to a queue, and whether only some of these do."""
    made = client_publishes(view)
    if made is None:
        return clients, len(clients) > 1
    readings = view.window.readings("channels")
    seconds = max(readings[-1].at.mono - made.start, 1.0)
    rates = {name: number / seconds for (vhost, name), number in made.by_owner.items() if vhost == queue.vhost}
    here = _rate_of_queue(view, queue, made) or publish_rate
    # The counters of both ends of an interval may be late by one refresh.
    unsure = view.limits(queue).queues.loss_skew / seconds
    whole = {name for name in clients if _same(rates.get(name, 0.0), here, unsure)}
    elsewhere = _elsewhere(view, queue, made, rates, unsure)
    alone = whole - elsewhere
    if alone:
        return alone, len(alone) > 1
    # One of the same rate as this queue and another one may publish to either.
    possible = {name for name in clients if name in whole or name not in elsewhere}
    total = sum(rates.get(name, 0.0) for name in possible)
    return possible, len(possible) > 1 and total > here and not _same(total, here, unsure)


def _elsewhere(view: View, queue: Queue, made: ClientPublishes, rates: _Rates, unsure: float) -> set[str | None]:
    """Return the clients that alone publish as much as another queue gets, or an exchange that does not lead here."""
    exchanges, found = exchanges_to(view, queue.vhost, queue.name), set()
    for rate in _other_rates(view, queue, exchanges, made):
        fitting = [name for name, each in rates.items() if _same(each, rate, unsure)]
        if len(fitting) == 1:
            found.add(fitting[0])
    return found


def _other_rates(view: View, queue: Queue, exchanges: set[str], made: ClientPublishes) -> Iterable[float]:
    """Yield the rate of each place that gets messages which do not come to a queue, messages per second."""
    for other in view.queues:
        if other.vhost != queue.vhost or other.key == queue.key or not other.stats.publish:
            continue
        # An exchange may copy a message to both.
        if not exchanges & exchanges_to(view, other.vhost, other.name) and (rate := _rate_of_queue(view, other, made)):
            yield rate
    aside = exchanges_aside(view, queue.vhost, [queue.name])
    for key, history in exchange_histories(view).items():
        if key in aside:
            series = readings_since(history, made.start - _ROUND)
            if len(series) > 1 and (received := messages_in(series)):
                yield received / span(series)


def _rate_of_queue(view: View, queue: Queue, made: ClientPublishes) -> float:
    series = since_first_reading(view, queue, made, _ROUND)
    return delta(series, "publish") / span(series) if span(series) else 0.0


def _same(rate: float, other: float, unsure: float) -> bool:
    """Return whether two rates may be those of the same messages, by the part of them that is not sure."""
    return rate > 0 and other > 0 and abs(rate - other) <= min(unsure, _MOST_UNSURE) * max(rate, other)

"""Clients that poll a queue which consumers read too: how many messages they got, and which client it is.

What basic.get returns with automatic acknowledgement is deleted, so no consumer of the queue gets it. The broker counts
such messages by queue (`get_no_ack`) and by channel, but not by both. A client is known if its channels alone polled as
much as the queue was polled; one that opens a connection for each poll is in no list of channels.
Source: https://www.rabbitmq.com/docs/consumers#polling; seen on 4.3.6, 4.0.5 and 3.10.8.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.snapshot import Channel, Connection, Queue
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.queue_families import name_pattern
from diagnosis.series import count, delta, span, steps, stretch
from diagnosis.window import Series

_SKEW = 5.0
"""Seconds by which the counters of a queue and of a channel may differ, because the broker refreshes each every 5 s."""
_LEAST_ALIKE = 3
"""Polls from which on equal numbers show which of several polled queues a client polls."""


@dataclass(frozen=True, slots=True)
class PolledBeside:
    """Messages of a queue that were polled with automatic acknowledgement while it had consumers.

    Attributes:
        run: readings of the queue since which it had consumers at each.
        polled, delivered: messages that were polled, and those that consumers got, within these readings.
        times: readings, at least an interval apart, before which messages were polled.
        first: the first reading after a poll.
        latest: the reading before the latest poll.
        channels: those of the client, if only one can have polled; else empty.
        suspects: connections of the virtual host that poll; one that is brief is not among them.
    """

    run: Series[Queue]
    polled: int
    delivered: int
    times: int
    first: Instant
    latest: Instant
    channels: tuple[Channel, ...]
    suspects: tuple[Connection, ...]


def polled_beside(view: View, queue: Queue) -> PolledBeside | None:
    """Return what was polled from a queue beside its consumers, while these got messages; None without."""
    if not queue.stats.get_no_ack or not queue.consumers or queue.type == "stream":
        return None
    run = stretch(view.history(queue), lambda older, _newer: bool(older.value.consumers))
    polled, delivered = delta(run, "get_no_ack"), delta(run, "deliver", "deliver_no_ack")
    if polled <= 0 or delivered <= 0:
        return None
    rises = [pair for pair in pairwise(run) if delta(pair, "get_no_ack") > 0]
    times = sum(delta(pair, "get_no_ack") > 0 for pair in steps(run, view.limits(queue).interval))
    suspects = per_view(view, _polling_clients).get(queue.vhost, ())
    return PolledBeside(
        run=run,
        polled=polled,
        delivered=delivered,
        times=times,
        first=rises[0][1].at,
        latest=rises[-1][0].at,
        channels=per_view(view, _only_clients).get(queue.key, ()),
        suspects=tuple(
            found for client in suspects for each in client.channels if (found := view.connection(each.connection_name))
        ),
    )


@dataclass(frozen=True, slots=True)
class _Client:
    """The channels of one client that polled with automatic acknowledgement.

    Attributes:
        rise: messages that they polled within the readings of channels.
        since, seconds: the first of these readings, by the monotonic clock, and the time that they cover.
    """

    channels: tuple[Channel, ...]
    rise: int
    since: float
    seconds: float

    def polled_as_many(self, *queues: Series[Queue]) -> bool:
        """Return whether as many messages were polled from these queues in the same time, the skew apart."""
        theirs = self.polled_from(*queues)
        return min(self.rise, theirs) > 0 and abs(self.rise - theirs) <= self.unsure(theirs)

    def polled_from(self, *queues: Series[Queue]) -> int:
        """Return how many messages were polled from these queues, by whomever, in the same time."""
        return sum(delta(tuple(s for s in each if s.at.mono >= self.since - 1.0), "get_no_ack") for each in queues)

    def unsure(self, polled: int) -> float:
        """Return by how many messages two counters may differ that rose by so many."""
        return 1 + _SKEW / self.seconds * polled if self.seconds else 0.0


def _polling_clients(view: View) -> dict[str, tuple[_Client, ...]]:
    """Return the clients of each virtual host that polled with automatic acknowledgement."""
    grouped: dict[tuple[str, str | None], list[Channel]] = defaultdict(list)
    for channel in view.channels:
        if channel.vhost is not None and channel.stats.get_no_ack:
            name = client_name(view.connection(channel.connection_name), channel.connection_name)
            grouped[channel.vhost, name].append(channel)
    found: dict[str, tuple[_Client, ...]] = defaultdict(tuple)
    for (vhost, _), channels in grouped.items():
        histories = [view.channel_history(each.name) for each in channels]
        rise = sum(delta(history, "get_no_ack") for history in histories)
        since = min(history[0].at.mono for history in histories)
        found[vhost] += (_Client(tuple(channels), rise, since, max(map(span, histories))),)
    return found


def _only_clients(view: View) -> dict[tuple[str, str], tuple[Channel, ...]]:
    """Return the channels of the client of each polled queue that only one client can have polled."""
    polled: dict[str, list[Series[Queue]]] = defaultdict(list)
    for queue in view.queues:
        if queue.stats.get_no_ack and delta(history := view.history(queue), "get_no_ack") > 0:
            polled[queue.vhost].append(history)
    found: dict[tuple[str, str], tuple[Channel, ...]] = {}
    unread = {queue.vhost for queue in view.unread}
    for vhost, clients in per_view(view, _polling_clients).items():
        queues = polled[vhost]
        # What a client polled may have come from a queue whose counters are not known.
        pairs = [] if vhost in unread else [(each, history) for each in clients for history in _polled_by(each, queues)]
        for key in {history[-1].value.key for _, history in pairs}:
            fitting = [client for client, history in pairs if history[-1].value.key == key]
            if len(fitting) == 1:
                found[key] = fitting[0].channels
    return found


def _polled_by(client: _Client, queues: list[Series[Queue]]) -> list[Series[Queue]]:
    """Return the polled queues of a virtual host that a client can have polled; empty if that is not known."""
    if len(queues) == 1:
        return queues if client.polled_as_many(*queues) or _active_then(client, queues[0]) else []
    if client.polled_as_many(*queues):
        # A check of many queues polls each of them. A few messages of one may be another client's.
        unsure = client.unsure(client.polled_from(*queues))
        return [history for history in queues if client.polled_from(history) > unsure]
    total = polls_since_opened(client.channels)
    fitting = [
        history
        for history in queues
        if client.rise >= _LEAST_ALIKE
        and client.polled_as_many(history)
        and total <= count(history[-1].value.stats, "get_no_ack") + 1
    ]
    # It polled one of these queues, and what it polled from one, it did not poll from another.
    return fitting if len(fitting) == 1 else []


def _active_then(client: _Client, history: Series[Queue]) -> bool:
    """Return whether a client that polls seldom polled enough, and was last active when the queue was last polled."""
    before, after = [pair for pair in pairwise(history) if delta(pair, "get_no_ack") > 0][-1]
    active = max((each.idle_since for each in client.channels if each.idle_since is not None), default=0.0)
    enough = not client.rise and polls_since_opened(client.channels) >= delta(history, "get_no_ack")
    return enough and before.at.wall - _SKEW <= active <= after.at.wall + _SKEW


def same_application(one: Connection | None, other: Connection | None) -> bool | None:
    """Return whether two connections are of one application, by user, library and name; None if that is not known.

    Instances of an application have the same name, or names that differ in a number.
    """
    if one is None or other is None or None in (one.user, other.user, one.client_product, other.client_product):
        return None
    if (one.user, one.client_product) != (other.user, other.client_product):
        return False
    if one.client_name is None or other.client_name is None:
        return True if one.client_name == other.client_name else None
    return name_pattern(one.client_name) == name_pattern(other.client_name)


def polls_since_opened(channels: Sequence[Channel]) -> int:
    """Return the messages that channels polled with automatic acknowledgement since they were opened."""
    return sum(count(each.stats, "get_no_ack") for each in channels)

"""Clients that poll a queue which consumers read too: how many messages they got, and which client it is.

What basic.get returns with automatic acknowledgement is deleted, so no consumer of the queue gets it. The broker counts
such messages by queue (`get_no_ack`) and by channel, but not by both. What it returns with manual acknowledgement
(`get`) is deleted too if the client settles it. If the client gives it back, it is delivered again and counted as
redelivered: so at least `get - redeliver` messages were removed, without those still held. A client is known if its
channels alone polled as much as the queue was polled; one that opens a connection for each poll is in no list of
channels.
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
AUTOMATIC, MANUAL = "get_no_ack", "get"
"""Counters of polled messages, by how they are acknowledged."""
_REMOVED = 0.5
"""Share of the messages polled with manual acknowledgement that must not have come back."""
_POLLS = ("get", "get_no_ack", "get_empty")
_PAUSES = 2.0
"""Pauses between two polls, as a multiple of the longest one, after which a queue counts as not polled any more."""
_LEAST_ALIKE = 3
"""Polls from which on equal numbers show which of several polled queues a client polls."""


@dataclass(frozen=True, slots=True)
class PolledBeside:
    """Messages of a queue that were polled and not given back while it had consumers.

    Attributes:
        counter: `AUTOMATIC` or `MANUAL`.
        run: readings of the queue since which it had consumers at each.
        polled, delivered: messages that were polled, and those that consumers got, within these readings.
        times: readings, at least an interval apart, before which messages were polled.
        first: the first reading after a poll.
        latest: the reading before the latest poll.
        channels: those of the client, if only one can have polled; else empty.
        suspects: connections of the virtual host that poll; one that is brief is not among them.
    """

    counter: str
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
    if not queue.consumers or queue.type == "stream":
        return None
    return _beside(view, queue, AUTOMATIC) or _beside(view, queue, MANUAL)


def _beside(view: View, queue: Queue, counter: str) -> PolledBeside | None:
    if not count(queue.stats, counter):
        return None
    run = stretch(view.history(queue), lambda older, _newer: bool(older.value.consumers))
    polled, delivered = delta(run, counter), delta(run, "deliver", "deliver_no_ack")
    if counter == MANUAL:
        polled = _removed(run, view.limits(queue).queues.loss_least)
    if polled <= 0 or delivered <= 0:
        return None
    rises = [pair for pair in pairwise(run) if delta(pair, counter) > 0]
    times = sum(delta(pair, counter) > 0 for pair in steps(run, view.limits(queue).interval))
    suspects = per_view(view, _polling_clients).get((counter, queue.vhost), ())
    return PolledBeside(
        counter=counter,
        run=run,
        polled=polled,
        delivered=delivered,
        times=times,
        first=rises[0][1].at,
        latest=rises[-1][0].at,
        channels=polling_channels(view, queue, counter),
        suspects=tuple(
            found for client in suspects for each in client.channels if (found := view.connection(each.connection_name))
        ),
    )


def _removed(run: Series[Queue], least: int) -> int:
    """Return how many messages that were polled with manual acknowledgement were not given back; 0 if most may be."""
    stats = run[-1].value.stats
    held = (run[-1].value.messages_unacked or 0) - (run[0].value.messages_unacked or 0)
    polled = delta(run, MANUAL)
    removed = polled - delta(run, "redeliver") - max(0, held)
    ever = count(stats, MANUAL)
    most_stay = removed >= _REMOVED * polled and ever - count(stats, "redeliver") >= _REMOVED * ever
    return removed if most_stay and removed >= least else 0


@dataclass(frozen=True, slots=True)
class _Client:
    """The channels of one client that polled.

    Attributes:
        counter: of the messages that it polled.
        rise: messages that they polled within the readings of channels.
        since, seconds: the first of these readings, by the monotonic clock, and the time that they cover.
    """

    counter: str
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
        return sum(delta(tuple(s for s in each if s.at.mono >= self.since - 1.0), self.counter) for each in queues)

    def unsure(self, polled: int) -> float:
        """Return by how many messages two counters may differ that rose by so many."""
        return 1 + _SKEW / self.seconds * polled if self.seconds else 0.0


def _polling_clients(view: View) -> dict[tuple[str, str], tuple[_Client, ...]]:
    """Return the clients that polled, by counter and virtual host."""
    grouped: dict[tuple[str, str, str | None], list[Channel]] = defaultdict(list)
    for channel in view.channels:
        for counter in (AUTOMATIC, MANUAL):
            if channel.vhost is not None and count(channel.stats, counter):
                name = client_name(view.connection(channel.connection_name), channel.connection_name)
                grouped[counter, channel.vhost, name].append(channel)
    found: dict[tuple[str, str], tuple[_Client, ...]] = defaultdict(tuple)
    for (counter, vhost, _), channels in grouped.items():
        histories = [view.channel_history(each.name) for each in channels]
        rise = sum(delta(history, counter) for history in histories)
        since = min(history[0].at.mono for history in histories)
        found[counter, vhost] += (_Client(counter, tuple(channels), rise, since, max(map(span, histories))),)
    return found


def _only_clients(view: View) -> dict[tuple[str, str, str], tuple[Channel, ...]]:
    """Return the channels of the client of each polled queue that only one client can have polled, by counter."""
    polled: dict[tuple[str, str], list[Series[Queue]]] = defaultdict(list)
    for queue in view.queues:
        for counter in (AUTOMATIC, MANUAL):
            if count(queue.stats, counter) and delta(history := view.history(queue), counter) > 0:
                polled[counter, queue.vhost].append(history)
    found: dict[tuple[str, str, str], tuple[Channel, ...]] = {}
    unread = {queue.vhost for queue in view.unread}
    for (counter, vhost), clients in per_view(view, _polling_clients).items():
        queues = polled[counter, vhost]
        # What a client polled may have come from a queue whose counters are not known.
        pairs = [] if vhost in unread else [(each, history) for each in clients for history in _polled_by(each, queues)]
        for key in {history[-1].value.key for _, history in pairs}:
            fitting = [client for client, history in pairs if history[-1].value.key == key]
            if len(fitting) == 1:
                found[(counter, *key)] = fitting[0].channels
    return found


def _polled_by(client: _Client, queues: list[Series[Queue]]) -> list[Series[Queue]]:
    """Return the polled queues of a virtual host that a client can have polled; empty if that is not known."""
    if len(queues) == 1:
        return queues if client.polled_as_many(*queues) or _active_then(client, queues[0]) else []
    if client.polled_as_many(*queues):
        # A check of many queues polls each of them. A few messages of one may be another client's.
        unsure = client.unsure(client.polled_from(*queues))
        return [history for history in queues if client.polled_from(history) > unsure]
    total = polls_since_opened(client.channels, client.counter)
    fitting = [
        history
        for history in queues
        if client.rise >= _LEAST_ALIKE
        and client.polled_as_many(history)
        and total <= count(history[-1].value.stats, client.counter) + 1
    ]
    # It polled one of these queues, and what it polled from one, it did not poll from another.
    return fitting if len(fitting) == 1 else []


def _active_then(client: _Client, history: Series[Queue]) -> bool:
    """Return whether a client that polls seldom polled enough, and was last active when the queue was last polled."""
    before, after = [pair for pair in pairwise(history) if delta(pair, client.counter) > 0][-1]
    active = max((each.idle_since for each in client.channels if each.idle_since is not None), default=0.0)
    enough = not client.rise and polls_since_opened(client.channels, client.counter) >= delta(history, client.counter)
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


def polling_channels(view: View, queue: Queue, counter: str) -> tuple[Channel, ...]:
    """Return the channels of the only client that can have polled a queue, by this counter; empty if unknown."""
    return per_view(view, _only_clients).get((counter, *queue.key), ())


def polls_since_opened(channels: Sequence[Channel], counter: str) -> int:
    """Return the messages that channels polled since they were opened, by this counter."""
    return sum(count(each.stats, counter) for each in channels)


def is_polled_in_time(history: Series[Queue]) -> bool:
    """Return whether a queue is polled again and again, and its last poll is no longer ago than its pauses allow.

    A job that empties its queue every 20 s leaves messages ready in between.

    Args:
        history: readings of the queue, oldest first.
    """
    polled = [newer.at for older, newer in pairwise(history) if delta((older, newer), *_POLLS) > 0]
    pauses = [later.since(earlier) for earlier, later in pairwise(polled)]
    return bool(pauses) and history[-1].at.since(polled[-1]) <= _PAUSES * max(pauses)

"""What each client published and polled in the readings of channels (about 25 s), over AMQP 0-9-1.

Channels do not say to which queue they publish, but a queue cannot get more than all channels publish: what it gets
beyond the publishes of other clients comes from this one. The Prometheus endpoints say to which exchange: what others
publish to one that does not lead to the queue does not come to it. Channels do not say which queue they poll
(basic.get) either: a client is known if it polled as many messages as were polled from the queue.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Overview, Queue
from diagnosis.churn import churn_increase
from diagnosis.contract import View
from diagnosis.exchange_publishes import published_to
from diagnosis.memo import per_view
from diagnosis.probe_traffic import probe_traffic
from diagnosis.purpose import POLLED
from diagnosis.rules.publishers._shared.away_queues import exchanges_aside
from diagnosis.series import count, delta, restarted, span
from diagnosis.window import Series

_UNSEEN = 3
"""Channels that may have been opened and closed between two readings, without asking what they published."""

_BESIDE = 1.0
"""Seconds within which readings of one round are taken."""

_NO_COUNTERS = MessageStats()


@dataclass(frozen=True, slots=True)
class ClientPublishes:
    """What was published between the first and the last reading of channels.

    Attributes:
        by_owner: (virtual host, name of the client) -> messages; the name of the connection if the client has none.
        by_channel: name of a channel -> messages.
        polled: as `by_owner`, of the messages that the client fetched with basic.get.
        total: virtual host -> messages.
        start: time of the first reading (monotonic).
        unseen: the most messages that channels may have published which are in no reading, in all virtual hosts.
    """

    by_owner: dict[tuple[str | None, str | None], int]
    by_channel: dict[str, int]
    polled: dict[tuple[str | None, str | None], int]
    total: dict[str | None, int]
    start: float
    unseen: int

    def others(self, vhost: str | None, owners: Iterable[str | None]) -> int:
        """Return the most messages that all other clients may have published in a virtual host."""
        return self.total.get(vhost, 0) - self.of(vhost, owners) + self.unseen

    def of(self, vhost: str | None, owners: Iterable[str | None]) -> int:
        """Return what some clients published in a virtual host."""
        return sum(self.by_owner.get((vhost, each), 0) for each in owners)

    def pollers(self, view: View, queue: Queue, skew: float) -> set[str | None]:
        """Return the clients that fetched messages from a queue with basic.get; empty if that is not known.

        If no other queue of the virtual host is polled, all its clients that poll fetched as many together. Else one of
        them alone fetched as many.

        Args:
            view: the view that is being judged.
            queue: the queue.
            skew: seconds by which its counters may differ from those of channels.
        """
        history = since_first_reading(view, queue, self, view.thresholds.interval)
        within = since_first_reading(view, queue, self, _BESIDE)
        polled = delta(history, *POLLED)
        unsure = 1 + skew * polled / span(history)
        least, most = delta(within, *POLLED) - unsure, polled + unsure
        known = {name: fetched for (vhost, name), fetched in self.polled.items() if vhost == queue.vhost and fetched}
        if self._polls_only(view, queue):
            return set(known) if least <= sum(known.values()) <= most else set()
        fitting = {name for name, fetched in known.items() if least <= fetched <= most}
        return fitting if len(fitting) == 1 else set()

    def _polls_only(self, view: View, queue: Queue) -> bool:
        """Return whether no other queue of a virtual host was polled."""
        if any(each.vhost == queue.vhost for each in view.unread):
            return False
        others = (each for each in view.queues if each.vhost == queue.vhost and each.key != queue.key)
        polled = (each for each in others if count(each.stats, *POLLED))
        return not any(
            delta(since_first_reading(view, each, self, view.thresholds.interval), *POLLED) for each in polled
        )


def client_publishes(view: View) -> ClientPublishes | None:
    """Return what each client published; None if it is unknown."""
    return per_view(view, _publishes)


def since_first_reading(view: View, queue: Queue, made: ClientPublishes, earlier: float) -> Series[Queue]:
    """Return the readings of a queue since the first reading of channels, or up to `earlier` seconds before it."""
    return tuple(seen for seen in view.history(queue) if seen.at.mono >= made.start - earlier)


def published_elsewhere(
    view: View, queues: Sequence[Queue], owners: Collection[str | None], made: ClientPublishes
) -> int:
    """Return what channels of other clients published that never used an exchange which may lead to some queues.

    Args:
        view: the view that is being judged.
        queues: the queues, all of one virtual host; channels of others are left out.
        owners: clients whose channels are left out.
        made: what all channels published.
    """
    aside = exchanges_aside(view, queues[0].vhost, (queue.name for queue in queues))
    return sum(
        made.by_channel.get(channel.name, 0)
        for channel in view.channels
        if owner(view, channel.connection_name) not in owners
        and (places := published_to(view).get(channel.name))
        and places <= aside
    )


def owner(view: View, connection_name: str | None) -> str | None:
    """Return the name of the client of a connection, else the name of the connection."""
    connection = view.connection(connection_name)
    return (connection.client_name if connection else None) or connection_name


def _publishes(view: View) -> ClientPublishes | None:
    readings: Series[tuple[Channel, ...]] = view.window.readings("channels")
    if len(readings) < 2:
        return None
    before = {each.name: each.stats for each in readings[0].value}
    by_owner: dict[tuple[str | None, str | None], int] = defaultdict(int)
    by_channel: dict[str, int] = defaultdict(int)
    polled: dict[tuple[str | None, str | None], int] = defaultdict(int)
    total: dict[str | None, int] = defaultdict(int)
    opened = 0
    for seen in readings[1:]:
        for channel in seen.value:
            now, was = channel.stats, before.get(channel.name)
            if was is None:
                opened, was = opened + 1, _NO_COUNTERS
            # Comparisons instead of sums: most channels of a large broker neither publish nor poll.
            elif now.publish == was.publish and now.get == was.get and now.get_no_ack == was.get_no_ack:
                continue
            before[channel.name] = now
            client = (channel.vhost, owner(view, channel.connection_name))
            gained = max(0, count(now, "publish") - count(was, "publish"))
            by_owner[client] += gained
            by_channel[channel.name] += gained
            polled[client] += max(0, count(now, *POLLED) - count(was, *POLLED))
            total[channel.vhost] += gained
    start = readings[0].at.mono
    unseen = _unseen(view, readings, opened, sum(total.values()))
    return None if unseen is None else ClientPublishes(by_owner, by_channel, polled, total, start, unseen)


def _unseen(view: View, readings: Series[tuple[Channel, ...]], opened: int, published: int) -> int | None:
    """Return the most messages that channels published which are in no reading; None if it is unknown.

    The total of the cluster counts them: what no other channel published is theirs. Who uses this number must allow for
    the delay between the counters.

    Args:
        view: the view that is being judged.
        readings: those of channels.
        opened: channels that were opened and are in a reading.
        published: messages that the channels in the readings published.
    """
    overviews: Series[Overview] = view.window.readings("overview")
    inside = [seen for seen in overviews if seen.at.mono >= readings[0].at.mono - 1.0]
    if len(inside) < 2:
        return 0
    first, latest = inside[0].value, inside[-1].value
    # The channels of our own probes come and go; what they publish is in queues of their own.
    probes = probe_traffic(view)
    own = math.ceil((probes.closes + probes.connects) * readings[-1].at.since(readings[0].at))
    if churn_increase(first, latest, "channel_created") - opened - own <= _UNSEEN:
        return 0
    if first.stats.publish is None or latest.stats.publish is None or restarted(first.stats, latest.stats):
        return None
    return max(0, latest.stats.publish - first.stats.publish - published)

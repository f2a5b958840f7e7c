"""Finds channels that publish, and what they published in the readings of channels (about 25 s)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ackscope.clock import Instant
from ackscope.findings import Fact, Involved
from ackscope.snapshot import Channel, Connection
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.series import count, delta, nearest, span
from diagnosis.window import Series

# State of a connection that has published under an alarm: the broker no longer reads from it.
BLOCKED = "blocked"

_NEARLY_ALL, _FEW = 0.99, 2
"""Share of its messages that a channel must have lost since it was opened, or all but so many: none was routed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePublisher:
    """A channel that published recently.

    Attributes:
        history: its readings, about 25 s.
        published: messages in that time.
    """

    channel: Channel
    connection: Connection | None
    history: Series[Channel]
    published: int

    @property
    def seconds(self) -> float:
        """Seconds that `history` spans."""
        return span(self.history)

    @property
    def rate(self) -> float:
        """Messages published per second."""
        return self.published / self.seconds if self.seconds else 0.0

    @property
    def client(self) -> str:
        """The application by the name of its connection."""
        return client_name(self.connection, self.channel.connection_name) or "unknown connection"

    def facts(self) -> dict[str, Fact]:
        """For the macro `publisher_label`: `{"client", "channel", "connection", "user", ...}`."""
        return {
            "client": self.client,
            "channel": self.channel.name,
            "connection": self.channel.connection_name,
            "user": self.channel.user,
            "published": self.published,
            "publish_rate": self.rate,
            "interval_seconds": self.seconds,
        }


def publishers(view: View) -> tuple[ActivePublisher, ...]:
    """Channels that published in the readings of channels, by name; AMQP 0-9-1 only, other protocols have no modes."""
    return per_view(view, _publishers)


def increase(view: View, history: Series[Channel], *counters: str) -> int:
    """The increase of counters of a channel over its readings; one that was opened among them counts from zero."""
    if not history:
        return 0
    first_read = view.channels_before
    opened_inside = first_read is not None and history[0].at != first_read
    before = 0 if opened_inside else count(history[0].value.stats, *counters)
    return count(history[-1].value.stats, *counters) - before


def publish_rate(view: View, publisher: ActivePublisher) -> float:
    """All messages that a publisher publishes per second; `rate` may be that of its lost ones only."""
    return increase(view, publisher.history, "publish") / max(publisher.seconds, 1.0)


def publish_rates(view: View, found: Iterable[ActivePublisher]) -> float:
    """All messages published per second by some publishers, routed or not."""
    return sum(publish_rate(view, each) for each in found)


def lost_rate(
    losing: Mapping[str, Sequence[ActivePublisher]], begin: Instant, end: Instant, names: set[str] | None
) -> float:
    """The messages per second that channels lost between two moments.

    Args:
        losing: channels by the counter of what they lose.
        begin: the first moment.
        end: the last one.
        names: the channels that count; None for all.
    """
    total = 0.0
    for counter, group in losing.items():
        for each in (it for it in group if names is None or it.channel.name in names):
            during = (nearest(each.history, begin), nearest(each.history, end))
            # Channels may be read less often than what they publish to.
            total += delta(during, counter) / span(during) if span(during) >= 1 else each.rate
    return total


def was_routed(publisher: ActivePublisher) -> bool:
    """Return whether a message of a channel ever reached a queue, by its counters; they are refreshed together."""
    published = count(publisher.channel.stats, "publish")
    return published - count(publisher.channel.stats, "drop_unroutable", "return_unroutable") > max(
        _FEW, (1 - _NEARLY_ALL) * published
    )


def by_vhost(found: Iterable[ActivePublisher]) -> Mapping[str, list[ActivePublisher]]:
    """Grouped by virtual host, in a fixed order."""
    groups: dict[str, list[ActivePublisher]] = {}
    for each in found:
        groups.setdefault(each.channel.vhost or "/", []).append(each)
    return dict(sorted(groups.items()))


def clients(found: Iterable[ActivePublisher]) -> list[str]:
    """Their applications, each once."""
    return sorted({each.client for each in found})


def listed(found: Iterable[ActivePublisher]) -> list[Fact]:
    """Application and channel of each: for the macro `publisher_list`."""
    return [{"client": each.client, "channel": each.channel.name} for each in found]


def involved_publishers(found: Sequence[ActivePublisher]) -> Involved:
    """Their channels and connections, also of those whose connection was not read."""
    involved = involved_connections((each.connection for each in found), (each.channel.name for each in found))
    names = sorted({each.channel.connection_name for each in found if each.channel.connection_name})
    return replace(involved, connections=tuple(names[:50]))


def first_seen(found: Iterable[ActivePublisher]) -> str:
    """The earliest reading of any of them, ISO 8601."""
    return min(each.history[0].at.iso() for each in found)


def _publishers(view: View) -> tuple[ActivePublisher, ...]:
    readings = view.window.readings("channels")
    before = {channel.name: channel for channel in readings[0].value} if readings else {}
    found = []
    for channel in view.channels:
        if not channel.stats.publish:
            continue
        # Most channels of a large cluster are idle: do not compute the history of those.
        older = before.get(channel.name)
        if older is not None and older.stats.publish == channel.stats.publish:
            continue
        connection = view.connection(channel.connection_name)
        if connection is not None and not (connection.protocol or "AMQP 0-9-1").startswith("AMQP 0"):
            continue
        history = view.channel_history(channel.name)
        published = increase(view, history, "publish")
        if published > 0 and len(history) > 1:
            found.append(ActivePublisher(channel=channel, connection=connection, history=history, published=published))
    return tuple(sorted(found, key=lambda each: each.channel.name))

"""Who publishes: channels of applications and what they published lately, worked out once a view."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ackscope.snapshot import Channel, Connection
from diagnosis.contract import View
from diagnosis.kept import kept
from diagnosis.series import count, span
from diagnosis.window import Series
from diagnosis.words import amount, client, some

HELD_BACK = "blocked"
"""State of a connection that has published under an alarm: the broker reads nothing from it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A channel that published lately.

    Attributes:
        lately: its readings, some 25 s.
        published: messages meanwhile.
    """

    channel: Channel
    connection: Connection | None
    lately: Series[Channel]
    published: int

    @property
    def seconds(self) -> float:
        """What `lately` spans."""
        return span(self.lately)

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.published / self.seconds if self.seconds else 0.0

    @property
    def name(self) -> str:
        """The application by the name that it gave itself, else its connection."""
        return client(self.connection, self.channel.connection_name)


def publishers(view: View) -> tuple[Publisher, ...]:
    """Channels that published within the readings that are held, by name; of AMQP 0-9-1 only: others have no modes."""
    return kept(view, _publishers)


def gained(view: View, history: Series[Channel], *counters: str) -> int:
    """What counters of a channel gained over its readings; one that began among them counts from zero."""
    if not history:
        return 0
    first_read = view.channels_before
    began_inside = first_read is not None and history[0].at != first_read
    before = 0 if began_inside else count(history[0].value.stats, *counters)
    return count(history[-1].value.stats, *counters) - before


def by_vhost(found: Iterable[Publisher]) -> Mapping[str, list[Publisher]]:
    """Grouped by virtual host, in a fixed order."""
    groups: dict[str, list[Publisher]] = {}
    for each in found:
        groups.setdefault(each.channel.vhost or "/", []).append(each)
    return dict(sorted(groups.items()))


def named(found: Iterable[Publisher], limit: int = 3) -> str:
    """Their applications, a few by name."""
    return some(sorted({repr(each.name) for each in found}), limit)


def listed(found: Iterable[Publisher], limit: int = 3) -> str:
    """Their applications and channels, a few by name."""
    return some((f"{each.name!r} (channel {each.channel.name!r})" for each in found), limit)


def pace(rate: float) -> str:
    """A rate as a person would say it."""
    return f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def channels_text(number: int) -> str:
    """`1 channel publishes`, `2 channels publish`."""
    return f"{amount(number, 'channel')} {'publishes' if number == 1 else 'publish'}"


def _publishers(view: View) -> tuple[Publisher, ...]:
    readings = view.window.readings("channels")
    before = {channel.name: channel for channel in readings[0].value} if readings else {}
    found = []
    for channel in view.channels:
        if not channel.stats.publish:
            continue
        # Most channels of a large cluster are idle: these are spared the whole history.
        older = before.get(channel.name)
        if older is not None and older.stats.publish == channel.stats.publish:
            continue
        connection = view.connection(channel.connection_name)
        if connection is not None and not (connection.protocol or "AMQP 0-9-1").startswith("AMQP 0"):
            continue
        history = view.channel_history(channel.name)
        published = gained(view, history, "publish")
        if published > 0 and len(history) > 1:
            found.append(Publisher(channel=channel, connection=connection, lately=history, published=published))
    return tuple(sorted(found, key=lambda each: each.channel.name))

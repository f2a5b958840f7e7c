"""Messages that no queue took: who sent them is told by channels, where to by exchanges.

Counters of channels tell dropped from returned; the list of exchanges tells only what came in and what went out, and
is read every 15 s. A message that an alternate exchange takes counts as out (seen on 3.10.8 and 4.3.6).
"""

import re
from dataclasses import dataclass
from enum import Enum

from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.kept import kept
from diagnosis.rules.publishers.publishing import Publisher, by_vhost, gained
from diagnosis.series import delta, last, span, steps, stretch
from diagnosis.window import Seen, Series

DROPPED, RETURNED = "drop_unroutable", "return_unroutable"
DELAYED = "x-delayed-message"
"""Type of exchange that holds messages back: they count as dropped although they are routed later.

Source: https://github.com/rabbitmq/rabbitmq-delayed-message-exchange/issues/321
"""
_SIMILAR = 0.3
"""An exchange is where messages vanish if it accounts for at least this share of what publishers lose."""


class Routes(Enum):
    """What an exchange does with what it gets."""

    NOTHING_NOW = "it used to route"
    NOTHING_EVER = "it has never routed a message"
    PART = "it routes a part"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossy:
    """An exchange that gets more than it hands to queues.

    Attributes:
        lately: its latest interval.
        lossy: its readings for as long as that goes on.
        before: it was seen to route all, earlier in the window.
        kinds: which counters of channels its loss fits.
    """

    exchange: Exchange
    lately: Series[Exchange]
    lossy: Series[Exchange]
    before: bool
    kinds: tuple[str, ...]

    @property
    def received(self) -> int:
        """Messages in its latest interval."""
        return came(self.lately)

    @property
    def vanished(self) -> int:
        """Of these, how many no queue took."""
        return came(self.lately) - went(self.lately)

    @property
    def rate(self) -> float:
        """Vanished a second."""
        return self.vanished / max(span(self.lately), 1.0)

    @property
    def routes(self) -> Routes:
        """What it does with what it gets."""
        if went(self.lately) > 0:
            return Routes.PART
        return Routes.NOTHING_NOW if self.exchange.stats.publish_out else Routes.NOTHING_EVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Senders:
    """Channels of one virtual host that lately published what no queue took.

    Attributes:
        publishers: with what they lost instead of all that they published.
        exchanges: where it vanished, the most first; empty where that cannot be told.
        pending: the exchanges were not read since: wait for the next reading.
    """

    vhost: str
    publishers: tuple[Publisher, ...]
    exchanges: tuple[Lossy, ...]
    pending: bool


def senders(view: View, counter: str) -> tuple[Senders, ...]:
    """Who published, by virtual host, what was dropped or returned; steadily, and not once."""
    found = kept(view, _losers)
    groups = by_vhost(found.get(counter, ()))
    return tuple(_senders(view, vhost, counter, group, found) for vhost, group in groups.items())


def by_design(view: View, exchange: Exchange) -> bool:
    """Whether settings say that nobody need subscribe to it."""
    return any(re.search(pattern, exchange.name) for pattern in view.thresholds.publishers.unroutable_by_design)


def came(series: Series[Exchange]) -> int:
    """Messages published to an exchange over its readings."""
    return (series[-1].value.stats.publish_in or 0) - (series[0].value.stats.publish_in or 0)


def went(series: Series[Exchange]) -> int:
    """Messages that it handed to queues; one that goes to three queues counts three times."""
    return (series[-1].value.stats.publish_out or 0) - (series[0].value.stats.publish_out or 0)


def _losers(view: View) -> dict[str, tuple[Publisher, ...]]:
    wanted = view.thresholds.publishers.unroutable_steps
    found: dict[str, list[Publisher]] = {DROPPED: [], RETURNED: []}
    for channel in view.channels:
        for counter, group in found.items():
            if not getattr(channel.stats, counter):
                continue
            history = view.channel_history(channel.name)
            lost = gained(view, history, counter)
            pairs = [pair for pair in steps(history, view.thresholds.interval / 2) if delta(pair, counter) > 0]
            # Where polls are far apart, one interval that lost several is as good as two that are short.
            long = lost > 1 and any(span(pair) >= view.thresholds.early for pair in pairs)
            if lost > 0 and (len(pairs) >= wanted or long):
                connection = view.connection(channel.connection_name)
                group.append(Publisher(channel=channel, connection=connection, lately=history, published=lost))
    return {counter: tuple(sorted(group, key=lambda each: each.channel.name)) for counter, group in found.items()}


def _senders(
    view: View, vhost: str, counter: str, group: list[Publisher], found: dict[str, tuple[Publisher, ...]]
) -> Senders:
    rates = {
        kind: [each.rate for each in publishers if each.channel.vhost == vhost] for kind, publishers in found.items()
    }
    lossy = [each for each in _lossy_exchanges(view, vhost, rates) if counter in each.kinds]
    read = view.window.readings("exchanges")
    settled = min(_first_seen(each, counter) for each in group) + view.thresholds.publishers.unroutable_patience
    # Read often enough since they began to lose messages, the exchanges have shown what they can.
    pending = not lossy and view.fresh("exchanges") and bool(read) and read[-1].at.mono < settled
    return Senders(vhost=vhost, publishers=tuple(group), exchanges=tuple(lossy), pending=pending)


def _first_seen(publisher: Publisher, counter: str) -> float:
    """When the first of its lost messages showed, on the monotonic clock."""
    readings = publisher.lately
    before = getattr(readings[0].value.stats, counter) or 0
    return next((s.at.mono for s in readings if (getattr(s.value.stats, counter) or 0) > before), readings[0].at.mono)


def _lossy_exchanges(view: View, vhost: str, rates: dict[str, list[float]]) -> list[Lossy]:
    least = _SIMILAR * min(rate for group in rates.values() for rate in group)
    found = []
    for exchange in view.exchanges:
        if exchange.vhost != vhost or not exchange.stats.publish_in or exchange.internal or _alternate(view, exchange):
            continue
        history = kept(view, _histories)[exchange.key]
        lately = last(history, view.thresholds.interval)
        vanished = came(lately) - went(lately)
        if len(lately) < 2 or came(lately) == 0 or vanished <= 0:
            continue
        rate = vanished / max(span(lately), 1.0) - (kept(view, _own_losses).get(vhost, 0.0) if not exchange.name else 0)
        if rate < least:
            continue
        lossy = stretch(history, _loses)
        before = history[: len(history) - len(lossy) + 1]
        routed = len(before) > 1 and came(before) > 0 and went(before) >= came(before)
        kinds = _kinds(rate, rates)
        found.append(Lossy(exchange=exchange, lately=lately, lossy=lossy, before=routed, kinds=kinds))
    return sorted(found, key=lambda each: (-each.vanished, each.exchange.name))


def _kinds(rate: float, rates: dict[str, list[float]]) -> tuple[str, ...]:
    """Dropped, returned or both: that of the channels, alone or together, whose pace is nearest."""
    paces = {kind: [*group, sum(group)] for kind, group in rates.items() if group}
    away = {kind: min(abs(pace - rate) for pace in group) for kind, group in paces.items()}
    nearest = min(away.values())
    return tuple(kind for kind, distance in away.items() if distance <= max(nearest * 1.2, 0.1 * rate))


def _loses(older: Seen[Exchange], newer: Seen[Exchange]) -> bool:
    pair = (older, newer)
    return came(pair) > 0 and went(pair) < came(pair)


def _alternate(view: View, exchange: Exchange) -> bool:
    """Whether another exchange takes what this one cannot route."""
    if "alternate-exchange" in exchange.arguments:
        return True
    return any(
        policy.name == exchange.policy and policy.vhost == exchange.vhost and "alternate-exchange" in policy.definition
        for policy in view.policies
        if not policy.operator
    )


def _histories(view: View) -> dict[tuple[str, str], Series[Exchange]]:
    """Each exchange at its readings in a row, oldest first; one whose counters fell began anew."""
    found: dict[tuple[str, str], list[Seen[Exchange]]] = {}
    for seen in view.window.readings("exchanges"):
        here = set()
        for exchange in seen.value:
            here.add(exchange.key)
            series = found.setdefault(exchange.key, [])
            if series and (exchange.stats.publish_in or 0) < (series[-1].value.stats.publish_in or 0):
                series.clear()
            series.append(Seen(seen.at, exchange))
        for key in found.keys() - here:
            del found[key]
    return {key: tuple(series) for key, series in found.items()}


def _own_losses(view: View) -> dict[str, float]:
    """What the probes publish to nowhere, by design, through the default exchange: messages a second by vhost."""
    own = {channel.name for channel in view.channels}
    rates: dict[str, float] = {}
    for channel in view.part("channels"):
        if channel.name in own or not (channel.stats.drop_unroutable or channel.stats.return_unroutable):
            continue
        history = view.channel_history(channel.name)
        lost = gained(view, history, DROPPED, RETURNED)
        rates[channel.vhost] = rates.get(channel.vhost, 0.0) + lost / max(span(history), 1.0)
    return rates

"""pub-unroutable-unlisted: messages are dropped without a route, and no channel that is listed dropped them.

The law beneath the rules about unroutable messages: those judge channels that are listed over several readings. A
virtual host counts every dropped message, also those of clients that connect, publish and are gone before channels are
read. What the listed channels dropped, and what channels that ended meanwhile may have dropped, is subtracted. Returned
messages are no loss: their publisher knows. Protocols other than AMQP 0-9-1 do not count what they drop.
Source: https://www.rabbitmq.com/docs/publishers#unroutable; counters seen on 3.10.8 and 4.3.6
"""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Finding,
    Involved,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Channel
from ackscope.topology import Exchange, VHost
from diagnosis.contract import RuleResult, View
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.memo import per_view
from diagnosis.rules.publishers._shared.exchange_counts import messages_in, messages_out
from diagnosis.rules.publishers._shared.lossy_exchanges import DELAYED, DROPPED, alternate_of, by_design
from diagnosis.series import last, span
from diagnosis.window import Series, Timestamped

NAME = "pub-unroutable-unlisted"

_SUBSCRIPTION_TYPES = ("fanout", "topic", "headers")
"""Types of exchanges that need no subscriber."""
_ROUND = 1.0
"""Seconds within which the families of one poll are read."""
_YOUNG = 30.0
"""Seconds for which a connection counts as new at the first reading of channels."""
_FITS = 0.5
"""Share of the unlisted messages that an exchange must lose to be where they are lost."""
_Listed = Sequence[tuple[Instant, Collection[str]]]
"""Time of each reading of channels, and the names of the channels that it lists."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Balance what each virtual host dropped against what its channels dropped."""
    readings = per_view(view, _readings)
    for vhost in view.vhosts:
        if not vhost.stats.drop_unroutable:
            continue
        history = tuple(
            Timestamped(seen.at, each) for seen in readings for each in seen.value if each.name == vhost.name
        )
        if len(history) < 2 or span(history) < view.thresholds.early:
            continue
        total = (vhost.stats.drop_unroutable or 0) - (history[0].value.stats.drop_unroutable or 0)
        listed, error = per_view(view, _listed).get(vhost.name, (0, 0))
        dropped = total - listed
        error += round(_late_seconds(view, vhost.name) * dropped / span(history))
        if dropped - error >= view.thresholds.queues.loss_least:
            yield from _finding(view, vhost.name, history, dropped, listed)


def _readings(view: View) -> Series[tuple[VHost, ...]]:
    """Return the readings of virtual hosts since channels were first read: earlier drops may be of any channel."""
    first = view.channels_before
    readings: Series[tuple[VHost, ...]] = view.window.readings("vhosts")
    return tuple(seen for seen in readings if first is not None and seen.at.since(first) >= -_ROUND)


def _late_seconds(view: View, vhost: str) -> float:
    """Return for how long, at most, a new channel of a virtual host drops what its counters do not show yet."""
    listed = [(seen.at, {each.name for each in seen.value}) for seen in view.window.readings("channels")]
    here = (each for each in view.channels if (each.vhost or "/") == vhost and not each.stats.drop_unroutable)
    return max((_new_seconds(view, listed, each) for each in here), default=0.0)


def _new_seconds(view: View, listed: _Listed, channel: Channel) -> float:
    """Return for how many seconds a channel that was just opened has been open at most; 0 for an older one.

    A first reading lists channels of any age: its connection tells whether one of them is new.
    """
    now, seen = listed[-1][0], [at for at, names in listed if channel.name in names]
    if not seen or now.since(seen[0]) >= 2 * SKEW_SECONDS:
        return 0.0
    connection = view.connection(channel.connection_name)
    began = connection.connected_at if connection is not None else None
    age = now.wall - began if began is not None else math.inf
    if seen[0] == listed[0][0] and age >= _YOUNG:
        return 0.0
    without = [at for at, names in listed if channel.name not in names]
    return min(2 * SKEW_SECONDS, age, now.since(without[-1]) if without else math.inf)


def _listed(view: View) -> dict[str, tuple[int, int]]:
    """Return what channels that were listed dropped, by virtual host, and by how much that may be too little.

    Channels and virtual hosts are refreshed and read at different times, and the last messages of a channel that ended
    are in no reading of it.
    """
    readings, vhosts = view.window.readings("channels"), per_view(view, _readings)
    if not readings or not vhosts:
        return {}
    since = vhosts[0].at
    counts: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for seen in readings:
        for channel in seen.value:
            if channel.stats.drop_unroutable:
                key = (channel.vhost or "/", channel.name)
                counts.setdefault(key, []).append((seen.at.mono, channel.stats.drop_unroutable))
    found: dict[str, tuple[int, int]] = {}
    for (vhost, _), numbers in counts.items():
        earlier = [seen.at.mono for seen in readings if seen.at.mono < numbers[0][0]]
        # One that dropped none at the first readings, or was opened since, counts from zero.
        shown = numbers[-1][0] - numbers[0][0]
        numbers[:0] = [(at, 0) for at in earlier[-1:]]
        before = next((number for at, number in reversed(numbers) if at <= since.mono), numbers[0][1])
        own = numbers[-1][1] - before
        ended = numbers[-1][0] < readings[-1].at.mono
        unsure = own if ended else round(2 * SKEW_SECONDS * (numbers[-1][1] - numbers[0][1]) / max(shown, SKEW_SECONDS))
        listed, error = found.get(vhost, (0, 0))
        found[vhost] = (listed + own, error + unsure + 1)
    return found


def _exchange(view: View, vhost: str, rate: float) -> tuple[Exchange, int, int] | None:
    """Return the exchange that loses as many messages, and what it received and routed; None unless it is only one."""
    found = []
    readings = view.window.readings("exchanges")
    for exchange in view.exchanges:
        if exchange.vhost != vhost or not exchange.stats.publish_in or alternate_of(view, exchange):
            continue
        series = tuple(Timestamped(seen.at, it) for seen in readings for it in seen.value if it.key == exchange.key)
        recent = last(series, view.thresholds.interval)
        received, routed = messages_in(recent), messages_out(recent)
        if len(recent) > 1 and span(recent) and received - routed >= _FITS * rate * span(recent):
            found.append((exchange, received, routed))
    return found[0] if len(found) == 1 else None


def _finding(view: View, vhost: str, history: Series[VHost], dropped: int, listed: int) -> Iterator[Finding]:
    seconds = span(history)
    rate = dropped / seconds
    place = _exchange(view, vhost, rate)
    exchange, received, routed = place if place is not None else (None, 0, 0)
    if exchange is not None and (exchange.type == DELAYED or by_design(view, exchange)):
        return
    meant = exchange is not None and exchange.type not in _SUBSCRIPTION_TYPES and routed == 0
    steady = sum(
        (newer.value.stats.drop_unroutable or 0) > (older.value.stats.drop_unroutable or 0)
        for older, newer in pairwise(history)
    )
    certain = meant and steady >= len(history) - 1
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if certain else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=history[0].at.iso(),
        facts={
            "vhost": vhost,
            "lost": dropped,
            "listed": listed,
            "over_seconds": seconds,
            "lost_rate": rate,
            "exchange": exchange.name if exchange is not None else None,
            "exchange_type": exchange.type if exchange is not None else None,
            "received": received,
            "routed": routed,
            "meant": meant,
        },
        certainty=Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=(
            Evidence(
                key="dropped",
                value=dropped + listed,
                unit=Unit.MESSAGES,
                source=source("/api/vhosts", f"message_stats.{DROPPED}"),
            ),
            Evidence(
                key="listed",
                value=listed,
                unit=Unit.MESSAGES,
                source=source("/api/channels", f"message_stats.{DROPPED}"),
            ),
            *(
                (
                    Evidence(
                        key="exchange",
                        value=received - routed,
                        unit=Unit.MESSAGES,
                        source=source("/api/exchanges", "message_stats.publish_in", "message_stats.publish_out"),
                    ),
                )
                if exchange is not None
                else ()
            ),
        ),
        involved=Involved(exchanges=(ExchangeRef(vhost, exchange.name),) if exchange is not None else ()),
    )

"""What channels publish to which exchange, as the Prometheus endpoints count it, and which channel is which process.

An endpoint names a channel by its Erlang process, the management API by its connection. Only their counters link the
two. Counters only rise: what a process has counted is at least what a channel showed in a reading before, and at
most what it shows in a reading after, once the broker has refreshed it. A process is a channel if its counters fit it
and no other channel of its node, and no other process fits that channel.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from ackscope.counters import MessageStats
from ackscope.second_source import ChannelPublishes, ExchangePublishes
from ackscope.snapshot import Channel
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.memo import per_view
from diagnosis.series import count, last, span
from diagnosis.view import View
from diagnosis.window import Series

ENDPOINT, FAMILY = "/metrics/detailed", "exchange_publishes"

METRICS = {
    "drop_unroutable": "rabbitmq_detailed_channel_messages_unroutable_dropped_total",
    "return_unroutable": "rabbitmq_detailed_channel_messages_unroutable_returned_total",
}
"""Counter of the management API -> metric with the same meaning, by channel and exchange."""

_COUNTERS = {
    "published": "publish",
    "confirmed": "confirm",
    "returned": "return_unroutable",
    "dropped": "drop_unroutable",
}
"""Attribute of `ChannelPublishes` -> counter of a channel."""

Process = tuple[str, str]
"""Node and Erlang process of a channel."""
ExchangeKey = tuple[str, str]
"""Virtual host and name of an exchange."""

_Counters = Mapping[str, int | None]

_MOST_PAIRS = 100_000
"""Pairs of processes and channels of a node that are compared, to bound the time: about 0.1 s."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A channel and its readings."""

    channel: Channel
    history: Series[Channel]


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a process counted: time, duration and counters of each reading."""

    vhost: str
    readings: list[tuple[float, float, _Counters]]

    @property
    def loses(self) -> bool:
        """Whether a message of it reached no queue."""
        return any(self.readings[-1][2][name] for name in METRICS)

    def fits(self, listed: _Listed) -> bool:
        """Return whether its counters lie between readings of a channel before and after, in every pair of them."""
        if listed.channel.vhost != self.vhost:
            return False
        before = after = False
        for seen in listed.history:
            for at, seconds, counters in self.readings:
                if seen.at.mono <= at - seconds:
                    before = True
                    if not _at_most(seen.value.stats, counters):
                        return False
                elif seen.at.mono >= at + SKEW_SECONDS:
                    after = True
                    if not _at_least(seen.value.stats, counters):
                        return False
        return before and after


@dataclass(frozen=True, slots=True)
class ExchangeGain:
    """What all channels published to an exchange between two readings of every node.

    Attributes:
        published: messages.
        lost: counter (`drop_unroutable`, `return_unroutable`) -> process -> messages that no queue took.
    """

    seconds: float
    published: int = 0
    lost: Mapping[str, Mapping[Process, int]] = field(default_factory=dict)

    def total(self, counter: str) -> int:
        """Return the messages that the exchange lost in this way."""
        return sum(self.lost.get(counter, {}).values())


def exchange_gains(view: View) -> Mapping[ExchangeKey, ExchangeGain] | None:
    """Return what exchanges got in the latest interval; None if that was not read of all nodes, or not recently."""
    return per_view(view, _gains)


def channels_by_process(view: View) -> Mapping[Process, str]:
    """Return the name of the channel of each process for which it is beyond doubt."""
    return per_view(view, _joined)


def published_to(view: View) -> Mapping[str, frozenset[ExchangeKey]]:
    """Return, by the name of a joined channel, all exchanges that it has published to since it was opened."""
    return per_view(view, _places)


def _readings(view: View) -> Series[ExchangePublishes]:
    found: Series[ExchangePublishes] = view.window.readings(FAMILY) if view.fresh(FAMILY) else ()
    return found


def _gains(view: View) -> Mapping[ExchangeKey, ExchangeGain] | None:
    recent = last(_readings(view), view.thresholds.interval)
    if len(recent) < 2 or span(recent) < view.thresholds.interval:
        return None
    # A partial sum would look like an exchange that loses less, or none.
    if any(seen.value.unread or seen.value.nodes != recent[-1].value.nodes for seen in recent):
        return None
    before = {_row(each): each for each in recent[0].value.channels}
    lost: dict[ExchangeKey, dict[str, dict[Process, int]]] = defaultdict(lambda: {name: {} for name in METRICS})
    published: dict[ExchangeKey, int] = defaultdict(int)
    for row in recent[-1].value.channels:
        known = before.get(_row(row))
        if known is None and recent[0].value.omitted:
            continue
        place = (row.vhost, row.exchange)
        published[place] += _gained(row, known, "published")
        for attribute in ("returned", "dropped"):
            if gained := _gained(row, known, attribute):
                lost[place][_COUNTERS[attribute]][(row.node, row.process)] = gained
    return {place: ExchangeGain(span(recent), published[place], lost[place]) for place in published}


def _row(row: ChannelPublishes) -> tuple[str, str, str, str]:
    return (row.node, row.process, row.vhost, row.exchange)


def _gained(row: ChannelPublishes, known: ChannelPublishes | None, attribute: str) -> int:
    now: int = getattr(row, attribute) or 0
    was: int = (getattr(known, attribute) or 0) if known is not None else 0
    # The number of a process is used again after a restart.
    return now - was if now >= was else now


def _places(view: View) -> Mapping[str, frozenset[ExchangeKey]]:
    names, readings = channels_by_process(view), _readings(view)
    found: dict[str, set[ExchangeKey]] = defaultdict(set)
    for row in readings[-1].value.channels if readings else ():
        name = names.get((row.node, row.process))
        if name is not None:
            found[name].add((row.vhost, row.exchange))
    return {name: frozenset(places) for name, places in found.items()}


def _joined(view: View) -> Mapping[Process, str]:
    readings = _readings(view)
    if not readings or not view.fresh("channels"):
        return {}
    latest = readings[-1].value
    if latest.omitted and all(row.loses for row in latest.channels):
        # One that is not listed may fit as well.
        return {}
    totals = [(seen.at.mono, seen.value.seconds, _totals(seen.value.channels)) for seen in readings]
    found: dict[Process, str] = {}
    for node in latest.nodes:
        processes = {each: _of_process(each, totals) for each in totals[-1][2] if each[0] == node}
        channels = {
            each.name: _Listed(each, view.channel_history(each.name))
            for each in view.every_channel
            if each.node == node and each.stats.publish
        }
        found |= _joined_of_node(processes, channels, whole=not latest.omitted)
    return found


def _joined_of_node(
    processes: Mapping[Process, _Counted], channels: Mapping[str, _Listed], *, whole: bool
) -> dict[Process, str]:
    """Return the channels of the processes of one node; of those that lose nothing only if there are not too many."""
    losing = [each for each in processes if processes[each].loses]
    lossy = [name for name, each in channels.items() if count(each.channel.stats, *METRICS)]
    if len(losing) * (len(lossy) + len(processes)) > _MOST_PAIRS:
        return {}
    pairs = [(process, lossy) for process in losing]
    if whole and len(processes) * (len(channels) + len(processes)) <= _MOST_PAIRS:
        pairs += [(process, list(channels)) for process in processes if process not in losing]
    found = {}
    for process, names in pairs:
        fitting = [name for name in names if processes[process].fits(channels[name])]
        if len(fitting) == 1 and not any(
            other != process and each.fits(channels[fitting[0]]) for other, each in processes.items()
        ):
            found[process] = fitting[0]
    return found


def _totals(rows: Iterable[ChannelPublishes]) -> dict[Process, tuple[str, dict[str, int | None]]]:
    """Return, by process, its virtual host and the sums of its counters; None where this version lacks one."""
    found: dict[Process, tuple[str, dict[str, int | None]]] = {}
    for row in rows:
        _, sums = found.setdefault((row.node, row.process), (row.vhost, dict.fromkeys(_COUNTERS.values(), 0)))
        for attribute, counter in _COUNTERS.items():
            value, before = getattr(row, attribute), sums[counter]
            sums[counter] = None if value is None or before is None else before + value
    return found


def _of_process(
    process: Process, totals: list[tuple[float, float, dict[Process, tuple[str, dict[str, int | None]]]]]
) -> _Counted:
    """Return what a process counted in the readings since one of its counters fell."""
    found: list[tuple[float, float, _Counters]] = []
    vhost = ""
    for at, seconds, each in totals:
        if process in each:
            vhost, counters = each[process]
            found.append((at, seconds, counters))
    start = 0
    for index, (older, newer) in enumerate(pairwise(found), 1):
        if any((newer[2][name] or 0) < (older[2][name] or 0) for name in newer[2]):
            start = index
    return _Counted(vhost, found[start:])


def _at_most(stats: MessageStats, counters: _Counters) -> bool:
    return all(number is None or (getattr(stats, name) or 0) <= number for name, number in counters.items())


def _at_least(stats: MessageStats, counters: _Counters) -> bool:
    return all(number is None or (getattr(stats, name) or 0) >= number for name, number in counters.items())

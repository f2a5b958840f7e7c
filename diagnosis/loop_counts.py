"""What the channels of a loop did, by the counters of the whole cluster (see `diagnosis.churn_loops`).

What lasting channels did is taken off, and what the probes' own queues show: what is left belongs to channels that no
reading tells of. Everything is taken between two readings of channels, or a few seconds of traffic would be left over.
"""

from collections.abc import Mapping
from typing import Any

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Overview, Queue
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.probe_traffic import ProbeTraffic
from diagnosis.series import T, count
from diagnosis.window import Series, Timestamped

ANSWERS = ("deliver_get", "get_empty", "confirm", "return_unroutable")
"""What the broker answers on a channel, a packet each."""
COUNTERS = ("publish", "deliver_get", "ack", "redeliver")
OPENS_WITHIN = 10.0
"""Seconds after which the channels of a connection are there: two readings."""
_MIN_READINGS = 3
"""Readings of channels that tell which of them stay."""
_AT_ONCE = 2.0
"""Seconds: parts of one poll are read within less."""


def watched(view: View, name: str) -> Series[Connection]:
    """The readings of a connection over the time of which channels were read as well; empty where that was once.

    What a connection does tells nothing without its channels: most have one that stays.
    """
    channels = view.window.readings("channels")
    if len(channels) < 2:
        return ()
    begin = channels[0].at.mono - OPENS_WITHIN
    return tuple(seen for seen in view.connection_history(name) if seen.at.mono >= begin)


def staying_channels(view: View) -> Mapping[str, list[tuple[Channel, Channel]]]:
    """Connection -> its channels that are the same ones in all readings but the first of it, each then and now."""
    return per_view(view, _staying)


def _staying(view: View) -> Mapping[str, list[tuple[Channel, Channel]]]:
    readings = [
        (seen.at, {channel.name: channel for channel in seen.value}) for seen in view.window.readings("channels")
    ]
    found: dict[str, list[tuple[Channel, Channel]]] = {}
    for channel in view.channels:
        history = watched(view, channel.connection_name or "")
        if not history:
            continue
        oldest, since = channel, readings[-1][0]
        for at, known in reversed(readings[:-1]):
            older = known.get(channel.name)
            if older is None or (older.reductions or 0) > (oldest.reductions or 0):
                break
            oldest, since = older, at
        within = [at for at, _ in readings if at.mono >= history[0].at.mono - _AT_ONCE]
        # Where channels are read seldom, the second reading is late.
        opened = max([history[0].at.mono + OPENS_WITHIN, *(at.mono for at in within[1:2])])
        if oldest is not channel and since.mono <= opened:
            found.setdefault(channel.connection_name or "", []).append((oldest, channel))
    return found


def may_stay(view: View, name: str) -> bool:
    """Whether a connection is too new to tell if its channel stays: so few readings of channels came after it."""
    begin = watched(view, name)[0].at.mono - _AT_ONCE
    readings = [seen for seen in view.window.readings("channels") if seen.at.mono >= begin]
    return len(readings) < _MIN_READINGS


def gained_messages(older: Channel, newer: Channel, *counters: str) -> int:
    """What some counters of a channel gained together."""
    return max(0, count(newer.stats, *counters) - count(older.stats, *counters))


def messages_per_cycle(view: View, begin: Instant, rate: float, own: ProbeTraffic) -> dict[str, float]:
    """Messages a cycle that no lasting channel accounts for, by counter.

    Args:
        view: with overview, channels and queues.
        begin: of the time that is looked at.
        rate: cycles a second.
        own: what the probes add to it.
    """
    overviews: Series[Overview] = view.window.readings("overview")
    channels: Series[tuple[Channel, ...]] = view.window.readings("channels")
    queues = _own_queues(view, channels[0].at) if channels else ()
    held = _together(channels, overviews, queues if queues and queues[-1].value else None)
    if len(held) < 2:
        return dict.fromkeys(COUNTERS, 0.0)
    since = [seen for seen in held if seen.at.mono >= begin.mono - 1.0]
    first, last = (since if len(since) > 1 else held[-2:])[0], held[-1]
    older, newer = _nearest(overviews, first.at), _nearest(overviews, last.at)
    seconds = max(newer.at.since(older.at), view.thresholds.interval)
    before, after = ({channel.name: channel for channel in seen.value} for seen in (first, last))
    staying = (pair for pairs in staying_channels(view).values() for pair in pairs)
    lasting = [(before.get(now.name, then), after.get(now.name, now)) for then, now in staying]
    probes = _pairs(queues, first.at, last.at)
    found = {}
    for counter in COUNTERS:
        total = count(newer.value.stats, counter) - count(older.value.stats, counter)
        total -= sum(gained_messages(then, now, counter) for then, now in lasting)
        total -= sum(max(0, count(now, counter) - count(then, counter)) for then, now in probes)
        extra = own.unroutable * seconds if counter == "publish" else 0.0
        found[counter] = max(0.0, total - extra) / max(1.0, rate * seconds)
    return found


def _own_queues(view: View, begin: Instant) -> Series[Mapping[tuple[str, str], MessageStats]]:
    """Counters of the queues of our probes: one of those has messages redelivered all the time."""
    readings: Series[tuple[Queue, ...]] = view.window.readings("queues")
    own = view.thresholds.own_prefixes
    return tuple(
        Timestamped(seen.at, {queue.key: queue.stats for queue in seen.value if queue.name.startswith(own)})
        for seen in readings
        if seen.at.mono >= begin.mono - _AT_ONCE
    )


def _pairs(
    queues: Series[Mapping[tuple[str, str], MessageStats]], begin: Instant, end: Instant
) -> list[tuple[MessageStats, MessageStats]]:
    if not queues:
        return []
    then, now = _nearest(queues, begin).value, _nearest(queues, end).value
    return [(then[key], stats) for key, stats in now.items() if key in then]


def _together(readings: Series[T], *others: Series[Any] | None) -> Series[T]:
    """The readings at whose moment all others were read as well: some fail now and then, or come late."""
    return tuple(
        seen
        for seen in readings
        if all(other is None or abs(_nearest(other, seen.at).at.since(seen.at)) <= _AT_ONCE for other in others)
    )


def _nearest(readings: Series[T], at: Instant) -> Timestamped[T]:
    return min(readings, key=lambda seen: (abs(seen.at.since(at)), seen.at.mono))

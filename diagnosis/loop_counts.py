"""Counts what the channels of a loop did, from the counters of the whole cluster (see `diagnosis.churn_loops`).

The counts of lasting channels and of the probes' own queues are subtracted. The remainder belongs to channels too short
for any reading. All counts cover the time between two readings of channels; otherwise a few seconds of other traffic
would remain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.protocols import STREAM, native_protocol
from ackscope.snapshot import Channel, Connection, Overview, Queue
from diagnosis.contract import View
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.loop_bytes import Cycle, active, cycle_of_error, fits_own_close
from diagnosis.memo import per_view
from diagnosis.probe_traffic import ProbeTraffic
from diagnosis.series import T, count, nearest, span
from diagnosis.window import Series, Timestamped

ANSWERS = ("deliver_get", "get_empty", "confirm", "return_unroutable")
"""Counters of answers of the broker on a channel; each answer is one packet."""
COUNTERS = ("publish", "deliver_get", "get", "get_no_ack", "get_empty", "ack", "redeliver", "return_unroutable")
OPENS_WITHIN = 10.0
"""Seconds within which a new connection opens its channels: two readings."""
_MIN_READINGS = 3
"""Readings of channels needed to know which of them stay."""
_WITH_ONE_ANSWER = 3
"""Packets of a cycle with open-ok, close-ok and one more answer."""
IN_NONE = 1 / 3
"""Messages per cycle that count as none: counters are refreshed at different times."""
_AT_ONCE = 2.0
"""Seconds within which all parts of one poll are read."""
_APART = 1.5
"""Seconds by which the counters of the cluster and those of its channels are mostly apart; seen on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopCounts:
    """What the cluster counted, without lasting channels and probes; all of it may be of one loop.

    Attributes:
        seconds: in which it was counted.
        closed: channels closed, with those of connections that ended.
        declares: queue declarations.
        messages: by counter, as in `COUNTERS`.
    """

    seconds: float
    closed: float
    declares: float
    messages: Mapping[str, float]


def may_close_itself(turn: Cycle, rate: float, counts: LoopCounts) -> bool:
    """Return whether the client of a loop may close its channels itself, by the bytes and the counters.

    Args:
        turn: one cycle.
        rate: cycles per second.
        counts: what was counted meanwhile.
    """
    few = IN_NONE * max(1.0, rate * counts.seconds)
    # A cycle with one answer has no room for both consume-ok and a delivery.
    single = turn.packets is not None and round(turn.packets) <= _WITH_ONE_ANSWER
    got = sum(counts.messages[each] for each in (("get", "get_no_ack") if single else ("deliver_get",)))
    # Answers of one length mean that each cycle declares, or none does.
    declares = counts.declares >= max(few, rate * (counts.seconds - SKEW_SECONDS))
    return fits_own_close(turn, declares=declares, content=max(got, counts.messages["return_unroutable"]) >= few)


def only_broker_ends(turn: Cycle, rate: float, counts: LoopCounts) -> bool:
    """Return whether a cycle is one that the broker ends, however few channels the client really closed.

    Several cycles look like one of as many times the packets, which the client might end itself.

    Args:
        turn: the shortest cycle, with an error.
        rate: cycles per second.
        counts: what was counted meanwhile.
    """
    if turn.packets is None or turn.sent is None or turn.received is None:
        return False
    for times in range(1, max(1, int(rate * counts.seconds)) + 1):
        longer = Cycle(packets=turn.packets * times, sent=turn.sent * times, received=turn.received * times)
        if may_close_itself(longer, rate / times, counts):
            return False
    return True


def shorter_cycle(history: Series[Connection], turn: Cycle, counts: LoopCounts) -> Cycle | None:
    """Return a cycle of fewer packets that the broker ends with an error; None unless the bytes leave no other.

    Cycles are first counted as if each connection that ended had closed a channel. One that is refused when it opens
    has none.

    Args:
        history: readings of the connection.
        turn: the cycle by that count.
        counts: what was counted meanwhile.
    """
    history = active(history)
    if turn.packets is None or turn.sent is None or turn.received is None or len(history) < 2 or not counts.closed:
        return None
    found = cycle_of_error(history, counts.closed * span(history) / counts.seconds, turn.packets)
    if found is None or found.packets is None:
        return None
    for packets in range(round(found.packets), round(turn.packets) + 1):
        size = packets / turn.packets
        longer = Cycle(packets=packets, sent=turn.sent * size, received=turn.received * size)
        if may_close_itself(longer, 0.0, counts):
            return None
    return found


def watched(view: View, name: str) -> Series[Connection]:
    """Return the readings of a connection since channels were first read; empty if channels were read only once.

    The traffic of a connection means nothing without its channels, because most connections have a lasting one.
    """
    channels = view.window.readings("channels")
    if len(channels) < 2:
        return ()
    begin = channels[0].at.mono - OPENS_WITHIN
    return tuple(seen for seen in view.connection_history(name) if seen.at.mono >= begin)


def staying_channels(view: View) -> Mapping[str, list[tuple[Channel, Channel]]]:
    """Return the lasting channels of each connection, each as (oldest, latest) reading.

    A channel counts as lasting if it exists since the connection's second reading or earlier.
    """
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
        # If channels are read seldom, the second reading comes later than `OPENS_WITHIN`.
        opened = max([history[0].at.mono + OPENS_WITHIN, *(at.mono for at in within[1:2])])
        if oldest is not channel and since.mono <= opened:
            found.setdefault(channel.connection_name or "", []).append((oldest, channel))
    return found


def may_stay(view: View, name: str) -> bool:
    """Return whether a connection is too new to know if its channel stays: it has too few readings of channels."""
    begin = watched(view, name)[0].at.mono - _AT_ONCE
    readings = [seen for seen in view.window.readings("channels") if seen.at.mono >= begin]
    return len(readings) < _MIN_READINGS


def has_no_channels(view: View, connection: Connection) -> bool:
    """Return whether a connection never has channels: of MQTT since 3.12, AMQP 1.0 since 4.0, and streams."""
    protocol = native_protocol(connection.protocol)
    if protocol is None or protocol == STREAM or connection.channels is None:
        return protocol is not None
    # Connections report a number of channels all the same.
    return view.has_native_amqp10


def gained_messages(older: Channel, newer: Channel, *counters: str) -> int:
    """Return the total increase of some counters of a channel."""
    return max(0, count(newer.stats, *counters) - count(older.stats, *counters))


def messages_per_cycle(
    view: View, begin: Instant, rate: float, own: ProbeTraffic
) -> tuple[dict[str, float], dict[str, float]]:
    """Return messages per cycle, by counter, that do not belong to lasting channels or to probes, and their error.

    The error is what lasting channels do in the seconds by which the counters of the cluster are refreshed apart.

    Args:
        view: a view with overview, channels and queues.
        begin: start of the period.
        rate: cycles per second.
        own: traffic of the probes.
    """
    overviews: Series[Overview] = view.window.readings("overview")
    channels: Series[tuple[Channel, ...]] = view.window.readings("channels")
    queues = _own_queues(view, channels[0].at) if channels else ()
    held = _together(channels, overviews, queues if queues and queues[-1].value else None)
    if len(held) < 2:
        return dict.fromkeys(COUNTERS, 0.0), dict.fromkeys(COUNTERS, 0.0)
    since = [seen for seen in held if seen.at.mono >= begin.mono - 1.0]
    first, last = (since if len(since) > 1 else held[-2:])[0], held[-1]
    older, newer = nearest(overviews, first.at), nearest(overviews, last.at)
    seconds = max(newer.at.since(older.at), view.thresholds.interval)
    before, after = ({channel.name: channel for channel in seen.value} for seen in (first, last))
    staying = (pair for pairs in staying_channels(view).values() for pair in pairs)
    lasting = [(before.get(now.name, then), after.get(now.name, now)) for then, now in staying]
    probes = _pairs(queues, first.at, last.at)
    found, unsure, cycles = {}, {}, max(1.0, rate * seconds)
    for counter in COUNTERS:
        total = count(newer.value.stats, counter) - count(older.value.stats, counter)
        of_lasting = sum(gained_messages(then, now, counter) for then, now in lasting)
        total -= of_lasting
        total -= sum(max(0, count(now, counter) - count(then, counter)) for then, now in probes)
        extra = own.unroutable * seconds if counter in {"publish", "return_unroutable"} else 0.0
        found[counter] = max(0.0, total - extra) / cycles
        unsure[counter] = of_lasting * min(1.0, _APART / seconds) / cycles
    return found, unsure


def _own_queues(view: View, begin: Instant) -> Series[Mapping[tuple[str, str], MessageStats]]:
    """Return the counters of our probes' queues; one probe causes redeliveries all the time."""
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
    then, now = nearest(queues, begin).value, nearest(queues, end).value
    return [(then[key], stats) for key, stats in now.items() if key in then]


def _together(readings: Series[T], *others: Series[Any] | None) -> Series[T]:
    """Return the readings at whose time all other parts were read too; single reads can fail or come late."""
    return tuple(
        seen
        for seen in readings
        if all(other is None or abs(nearest(other, seen.at).at.since(seen.at)) <= _AT_ONCE for other in others)
    )

"""Finds applications that open and close channels or connections in a loop, and what they did in each cycle.

A channel that lives for less than a statistics interval (5 s) has no counters of its own. It leaves other traces. They
were measured on 3.10.8 and 4.3.6 (in part on 4.0.5) with each of the loops below at five cycles a second:

- `churn_rates` of the overview: `channel_created` and `channel_closed` rise by one per cycle, whatever the reason;
  `queue_declared` too where the cycle declares, also when that is refused (406, 405). A refused publish, consume or
  acknowledgement is not counted: `publish` of the overview, the exchange and the queue does not rise.
- The connection stays, mostly with 0 channels in both lists. Its packets and bytes are refreshed together every 5 s.

The bytes of a cycle are in `diagnosis.loop_bytes`.

A client that closes the whole connection at each error raises `connection_created` and `connection_closed`, and shows
as connections of one name that come and go. The broker does not report the bytes of such short connections in time.
"""

import math
import statistics
from collections import Counter
from dataclasses import asdict, dataclass, replace

from ackscope.clock import Instant
from ackscope.findings import Subject
from ackscope.snapshot import Channel, Connection, Overview
from diagnosis.churn import churn_increase, churn_streak, churn_window, cycles_within, link_restarts, loop_streak
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.left_clients import client_of
from diagnosis.loop_bytes import (
    Cycle,
    active,
    certain_packets,
    cycle,
    heartbeats,
    increase,
    is_over,
    text_beside_confirms,
)
from diagnosis.loop_counts import (
    ANSWERS,
    IN_NONE,
    OPENS_WITHIN,
    LoopCounts,
    gained_messages,
    has_no_channels,
    may_close_itself,
    may_stay,
    messages_per_cycle,
    only_broker_ends,
    shorter_cycle,
    staying_channels,
    watched,
)
from diagnosis.memo import per_view
from diagnosis.probe_traffic import probe_traffic
from diagnosis.series import span
from diagnosis.view import is_own
from diagnosis.window import Series

FEWEST = 3
"""Minimum number of cycles that count as a loop."""
OWN_RATE = 1.0
"""Channels closed per second in the whole cluster that show a loop while our own probes run.

A slower loop is then reported only if the bytes of its connection show a broker error.
"""
_SMALLEST_SHARE = 50
_WENT = 2
"""Minimum number of connections of an application that must have gone: a restart also ends one."""
_UNCONFIRMED = 2.5
"""Packets per cycle up to which the channel is not in confirm mode, which has an answer of its own."""
_IN_EACH = 0.7
"""Messages per cycle that count as at least one in each: counters are refreshed at different times."""
_ASKS = 12
"""Minimum bytes that a client in a loop sends per packet of the broker: channel.open has 13, close-ok 12."""

Identity = tuple[str, str, str, str]
"""Name, user, virtual host and peer host of an application. These stay the same when it reconnects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnLoop:
    """One application that opens and closes channels or connections in a loop.

    Attributes:
        connection: its connection; the latest one if the connections come and go.
        client: the name that the application gave itself, else its library or its connection.
        whole: True if whole connections come and go, False if only channels of a lasting connection do.
        alone: True if no other application of the cluster loops, so that all churn of the cluster is from this one.
        rate: cycles per second of this application.
        lasts: seconds for which the cluster's counters have shown the loop without a pause, within the window.
        since: when the loop began.
        received, sent: bytes per cycle, as the broker counts them; None if unknown (always with `whole`).
        packets: packets per cycle that the broker sent; None if unknown.
        error: length in bytes of the text with which the broker closes each channel, if it does; None if the client
            closes them or if the length is unknown. Compare with `text_bytes`.
        by_broker: whether the broker closes the channels; None if unknown. True only if the bytes rule out a client
            that closes them itself.
        beside_confirms: as `error`, if all other answers are confirms; None if the bytes do not show it.
        declares: queue declarations per cycle that created no lasting queue, by the cluster's count; refused
            ones included.
        published, delivered, acked, redelivered: messages per cycle of the whole cluster, without those of lasting
            channels; `published_unsure` of them may be of these. About 0 if every publish is refused. The broker
            refreshes its counters at different moments, so treat values below a third as 0.
    """

    connection: Connection
    client: str
    whole: bool
    alone: bool
    rate: float
    lasts: float
    since: Instant
    received: float | None = None
    sent: float | None = None
    packets: float | None = None
    error: int | None = None
    by_broker: bool | None = None
    beside_confirms: int | None = None
    declares: float = 0.0
    published: float = 0.0
    published_unsure: float = 0.0
    delivered: float = 0.0
    acked: float = 0.0
    redelivered: float = 0.0

    @property
    def subject(self) -> Subject:
        """Subject of a finding: the connection, or the application's name if connections come and go."""
        there = self.connection
        name = self.client if self.whole else there.name
        return Subject(kind="connection", name=name, vhost=there.vhost, node=None if self.whole else there.node)

    @property
    def peer(self) -> str:
        """Address of the application, `host:port`, or `host` if connections come and go; "" if unknown."""
        host, port = self.connection.peer_host, self.connection.peer_port
        return f"{host}:{port}" if host and port and not self.whole else host or ""

    @property
    def turn(self) -> Cycle:
        """Packets and bytes of a cycle, without who ends it."""
        return Cycle(packets=self.packets, sent=self.sent, received=self.received)

    def said(self, *texts: str) -> bool:
        """Return whether the broker's error is as long as one of these texts."""
        return self.error is not None and self.error in {text_bytes(text) for text in texts}


def text_bytes(text: str) -> int:
    """Return the length of an error text on the wire; the broker cuts it at 255 bytes."""
    return min(len(text.encode()), 255)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCycles:
    """What an average cycle does, over all loops of the cluster: those of listed clients and of connections too brief.

    Attributes:
        rate: cycles per second.
        channels: channels opened per connection, where connections come and go; None where none do.
        declares: as in `ChurnLoop`.
        connection_declares: declares that created no queue at all, per connection that comes and goes, without those
            that loops of channels account for; connections of the probes are left out. A declare of a queue that exists
            is among them, and so is one of a client that stays connected.
        messages: publishes, deliveries, gets of an empty queue and acknowledgements per cycle.
    """

    rate: float
    channels: float | None
    declares: float
    connection_declares: float
    messages: float


def churn_loops(view: View) -> tuple[ChurnLoop, ...]:
    """Return the applications that open and close channels or connections in a loop, fastest first.

    Needs at least two readings of each of overview, connections and channels.
    """
    return per_view(view, _closings)[0]


def cluster_cycles(view: View) -> ClusterCycles | None:
    """Return what an average cycle of the cluster does; None if nothing loops."""
    return per_view(view, _closings)[1]


def _closings(view: View) -> tuple[tuple[ChurnLoop, ...], ClusterCycles | None]:
    overviews: Series[Overview] = view.window.readings("overview")
    ends = churn_window(view, overviews)
    if ends is None:
        return (), None
    first, latest = ends
    seconds = latest.at.since(first.at)
    found: list[ChurnLoop] = []
    closed = churn_increase(first.value, latest.value, "channel_closed")
    ended = churn_increase(first.value, latest.value, "connection_closed")
    began = churn_increase(first.value, latest.value, "connection_created")
    opened = churn_increase(first.value, latest.value, "channel_created")
    # Our probes close channels on purpose, and the cluster's counters include those; connections have names.
    own = probe_traffic(view)
    slowest = OWN_RATE if any(is_own(each) for each in view.every_connection) else 0.0
    cycles = closed - ended - own.closes * seconds
    if min(ended, began) >= FEWEST:
        found += _connections(view, overviews, _Turnover(ended, began, seconds))
    if cycles >= FEWEST:
        loops = _channels(view, overviews, cycles / seconds, seconds, own.closes)
        found += [each for each in loops if closed - ended >= slowest * seconds or each.error is not None]
    most = closed - own.closes * seconds  # Connections of MQTT, and those refused at their opening, have no channel.
    known = {each.connection.name for each in found if each.error is not None}
    beside = (
        _channels(view, overviews, most / seconds, seconds, own.closes, ends=False) if ended and most >= FEWEST else []
    )
    beside = [each for each in beside if each.error and each.connection.name not in known]
    if not found and not beside and min(ended, began) < FEWEST:
        return (), None
    turns = max(1.0, closed - own.closes * seconds, min(ended, began))
    per_cycle, unsure = messages_per_cycle(view, first.at, turns / seconds, own)
    # A declaration that created a lasting queue is not part of a loop (seen: `queue-leak` on 3.10.8).
    declared, created, deleted = (
        churn_increase(first.value, latest.value, f"queue_{word}") for word in ("declared", "created", "deleted")
    )
    vain = declared - max(0, created - deleted)
    declares = (vain - own.declares * seconds) / turns
    # A queue that was created and is deleted again, such as one for a reply, was not refused.
    uncreated = declared - created - own.declares * seconds
    if min(created - own.declares * seconds, deleted) >= _IN_EACH * max(cycles, FEWEST):
        # The name of the queue in declare-ok, and what was delivered to it, can be as long as the text of an error.
        found = [each if each.whole else replace(each, error=None, by_broker=None) for each in found]
    counts = LoopCounts(
        seconds=seconds,
        closed=most,
        declares=declared - own.declares * seconds,
        messages={counter: each * turns for counter, each in per_cycle.items()},
    )
    proven = {each.connection.name: each for each in beside if only_broker_ends(each.turn, each.rate, counts)}
    found = [*(each for each in found if each.whole or each.connection.name not in proven), *proven.values()]
    alone = len(found) == 1
    others = max(
        declares, *(per_cycle[counter] for counter in ("deliver_get", "get_empty", "ack", "return_unroutable"))
    )
    found = [_with_closer(view, each, counts, alone=alone) for each in found]
    if per_cycle["publish"] >= _IN_EACH and others < IN_NONE:
        found = [
            replace(each, error=each.beside_confirms, by_broker=True) if each.beside_confirms else each
            for each in found
        ]
    whole = [
        replace(
            each,
            alone=alone,
            declares=max(0.0, declares),
            published=per_cycle["publish"],
            published_unsure=unsure["publish"],
            delivered=per_cycle["deliver_get"],
            acked=per_cycle["ack"],
            redelivered=per_cycle["redeliver"],
        )
        for each in found
    ]
    lasting = [each for each in whole if not each.whole]
    refused = sum(each.rate for each in lasting if each.by_broker is not False)
    briefly = min(ended, began) - own.connects * seconds
    comes_and_goes = briefly >= FEWEST
    channels = opened - (own.closes + own.connects + sum(each.rate for each in lasting)) * seconds
    average = ClusterCycles(
        rate=turns / seconds,
        channels=max(0.0, channels) / briefly if comes_and_goes else None,
        declares=max(0.0, declares),
        connection_declares=max(0.0, uncreated - refused * seconds) / briefly if comes_and_goes else 0.0,
        messages=sum(per_cycle[counter] for counter in ("publish", "deliver_get", "get_empty", "ack")),
    )
    return tuple(sorted(whole, key=lambda each: (-each.rate, each.connection.name))), average


def _with_closer(view: View, each: ChurnLoop, counts: LoopCounts, *, alone: bool) -> ChurnLoop:
    """Return a loop that says who closes its channels only where the client cannot be the one that does it."""
    if each.error is not None:
        return replace(each, by_broker=None) if may_close_itself(each.turn, each.rate, counts) else each
    shorter = shorter_cycle(watched(view, each.connection.name), each.turn, counts) if alone else None
    if shorter is None or not (each.packets and shorter.packets):
        return each
    return replace(each, rate=each.rate * each.packets / shorter.packets, **asdict(shorter))


@dataclass(frozen=True, slots=True)
class _Turnover:
    """Connections of the cluster that ended and began within some seconds, by its counters."""

    ended: int
    began: int
    seconds: float

    @property
    def cycles(self) -> int:
        """Connections that came and went."""
        return max(0, min(self.ended, self.began))

    @property
    def rate(self) -> float:
        """Connections that came and went per second."""
        return self.cycles / self.seconds


def _connections(view: View, overviews: Series[Overview], turnover: _Turnover) -> list[ChurnLoop]:
    """Return loops of applications whose connections came and went between the readings.

    A connection that is listed is one cycle of its own application. So the cycles of a loop are those of the cluster
    without the listed connections of others.
    """
    groups: dict[Identity, dict[str, Connection]] = {}
    lasting = _everywhere(view)
    own = {connection.name for connection in view.connections}
    for seen in view.window.readings("connections"):
        for connection in seen.value:
            if connection.name in lasting or (seen.value is view.every_connection and connection.name not in own):
                continue
            groups.setdefault(identity(connection), {})[connection.name] = connection
    readings = view.window.readings("connections")
    if not readings:
        return []
    latest_names = {connection.name for connection in readings[-1].value}
    fewest = min(_WENT, len(readings) - 1)
    came = {
        key: known
        for key, known in groups.items()
        if len(known) >= 2 and len(known.keys() - latest_names) >= fewest and not key[0].startswith("ackscope-")
    }
    earliest_names = {connection.name for connection in readings[0].value}

    def without_others(came: dict[Identity, dict[str, Connection]]) -> _Turnover:
        others = {name for key, known in groups.items() if key not in came for name in known}
        ended = turnover.ended - len(others - latest_names)
        return _Turnover(ended, turnover.began - len(others - earliest_names), turnover.seconds)

    # Without one that is too slow for its share, the share of each of the others is larger.
    while came and (brief := _brief(view, came, without_others(came).rate)) != came:
        came = brief
    own_turnover = without_others(came)
    if not came or own_turnover.cycles < FEWEST:
        return []
    rate, total = own_turnover.rate, sum(len(known) for known in came.values())
    spell = loop_streak(view, overviews, "connection", turnover.rate)
    return [
        ChurnLoop(
            connection=(latest := max(known.values(), key=lambda each: (each.connected_at or 0.0, each.name))),
            client=client_name(latest, latest.name) or latest.name,
            whole=True,
            alone=False,
            rate=rate * len(known) / total,
            lasts=spell[-1].at.since(spell[0].at),
            since=spell[0].at,
        )
        for key, known in sorted(came.items())
    ]


def _brief(
    view: View, groups: dict[Identity, dict[str, Connection]], rate: float
) -> dict[Identity, dict[str, Connection]]:
    """Return the groups whose connections are brief enough for their share of the cluster's rate.

    By Little's law, the rate of a client times the life of its connections is how many are open at once.
    A client that reconnects once in 30 s, as in a deployment, is not the one that others' loops make look busy. Nor is
    a client whose connections were all open at once: none of them succeeds another. The clocks of the nodes may differ
    from ours, so ages are compared with the smallest age that was seen.
    """
    keys = {name: key for key, known in groups.items() for name in known}
    ages: dict[str, float] = {}
    at_once: Counter[Identity] = Counter()
    for seen in view.window.readings("connections"):
        listed = [each for each in seen.value if each.name in keys]
        at_once |= Counter(keys[each.name] for each in listed)
        for each in listed:
            if each.connected_at is not None:
                ages[each.name] = max(ages.get(each.name, -math.inf), seen.at.wall - each.connected_at)
    youngest = min(ages.values(), default=0.0)
    total = sum(len(known) for known in groups.values())
    found = {}
    for key, known in groups.items():
        lives = [ages.get(name, youngest) - youngest for name in known]
        if len(known) != at_once[key] and statistics.median(lives) * rate * len(known) / total <= at_once[key]:
            found[key] = known
    return found


def identity(connection: Connection) -> Identity:
    """Return what stays the same when an application reconnects."""
    return (*client_of(connection), connection.peer_host or "")


def _everywhere(view: View) -> frozenset[str]:
    """Return the names of the connections that are in every reading."""
    held = [frozenset(each.name for each in seen.value) for seen in view.window.readings("connections")]
    return frozenset.intersection(*held) if held else frozenset()


def _channels(
    view: View, overviews: Series[Overview], rate: float, seconds: float, own_rate: float, *, ends: bool = True
) -> list[ChurnLoop]:
    """Return loops of connections that stay while their channels come and go.

    Args:
        view: the view that is being judged.
        overviews: all readings of the overview.
        rate: cycles per second of the cluster.
        seconds: for which `rate` was measured.
        own_rate: channels per second that our own probes close.
        ends: True if each connection that ended has closed a channel, which is not part of a loop.
    """
    staying = staying_channels(view)
    listed = {channel.connection_name for channel in view.channels}
    strong: list[tuple[Series[Connection], int]] = []
    weak: list[tuple[Series[Connection], int]] = []
    for connection in view.connections:
        history = watched(view, connection.name)
        if len(history) < 2 or is_over(history) or has_no_channels(view, connection):
            continue
        new = history[-1].at.since(history[0].at) <= OPENS_WITHIN
        if any(channel.transactional for _, channel in staying.get(connection.name, ())):
            # Each commit has an answer, and no counter of commits: its packets say nothing about other channels.
            continue
        unsure = connection.name in listed and connection.name not in staying
        if unsure and (new or may_stay(view, connection.name)):
            # Its channel may be a lasting one: the next reading shows it.
            continue
        packets, _, received = increase(history[0].value, history[-1].value)
        sent = min(packets, received // _ASKS)
        answered = sum(gained_messages(*pair, *ANSWERS) for pair in staying.get(connection.name, ()))
        unexplained = sent - answered - heartbeats(connection, span(history))
        if unexplained >= 2 * FEWEST:
            (weak if connection.name in staying else strong).append((history, unexplained))
    # If connections without a lasting channel explain the cycles, those with one are not suspects. A link that restarts
    # closes channels of connections that are too brief to be listed.
    suspects = strong or (weak if len(weak) == 1 and not link_restarts(view) else [])
    total = sum(unexplained for _, unexplained in suspects)
    suspects = [(history, unexplained) for history, unexplained in suspects if unexplained >= total / _SMALLEST_SHARE]
    spell = churn_streak(view, overviews, "channel_closed", rate)
    shares = [
        (active(history), unexplained / total)
        for history, unexplained in suspects
        if rate * seconds * unexplained / total >= FEWEST
    ]
    loops = [
        _loop_of(
            own,
            rate * share,
            cycles_within(overviews, own, own_rate, ends=ends) * share,
            staying.get(own[-1].value.name, []),
            spell,
            alone=len(suspects) == 1,
        )
        for own, share in shares
    ]
    together = sum(each.rate for each in loops)

    def is_certain(each: ChurnLoop, own: Series[Connection]) -> bool:
        others = (together - each.rate) * span(own)
        packets, cycles = increase(own[0].value, own[-1].value)[0], cycles_within(overviews, own, own_rate, ends=ends)
        return each.error is None or certain_packets(packets, each.packets or 0.0, cycles, others)

    return [
        each
        if is_certain(each, own)
        else replace(each, rate=rate * share, error=None, by_broker=None, packets=None, sent=None, received=None)
        for each, (own, share) in zip(loops, shares, strict=True)
    ]


def _loop_of(
    history: Series[Connection],
    rate: float,
    cycles: float,
    staying: list[tuple[Channel, Channel]],
    spell: Series[Overview],
    *,
    alone: bool,
) -> ChurnLoop:
    """Return the loop of one connection; without packets and bytes if it also has lasting channels."""
    newer, seconds = history[-1].value, span(history)
    turn = Cycle() if staying else cycle(history, cycles, alone=alone)
    if turn.error is not None and turn.packets:
        # Count the cycles from its own packets: the cluster's count may include those of others.
        rate = increase(history[0].value, newer)[0] / turn.packets / seconds
    return ChurnLoop(
        connection=newer,
        client=client_name(newer, newer.name) or newer.name,
        whole=False,
        alone=alone,
        rate=rate,
        lasts=spell[-1].at.since(spell[0].at),
        since=spell[0].at,
        received=turn.received,
        sent=turn.sent,
        packets=turn.packets,
        error=turn.error,
        by_broker=turn.by_broker,
        beside_confirms=text_beside_confirms(history, cycles) if alone and (turn.packets or 0) > _UNCONFIRMED else None,
    )

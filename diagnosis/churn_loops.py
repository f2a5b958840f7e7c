"""Who opens and closes channels, or whole connections, in a loop, and what those did.

A channel that lives for less than a statistics interval (5 s) leaves no counters of its own. What it leaves, seen on
3.10.8 and 4.3.6 (and in part 4.0.5) with each of the loops below, five times a second:

- `churn_rates` of the overview: `channel_created` and `channel_closed` rise by one a cycle, whatever the reason;
  `queue_declared` too where the cycle declares, also when that is refused (406, 405). A refused publish, consume or
  acknowledgement counts nowhere: `publish` stands still, of the overview, of the exchange and of the queue.
- The connection stays, mostly with 0 channels in both lists. Its packets and bytes are renewed every 5 s, together.
- The broker answers an open channel with 16 bytes and the client's own close with 12: two packets and 28 bytes a
  cycle, and what it answered besides. Where the broker closes the channel, it sends 19 bytes and the error's text:
  two packets, and `16 + 19 + length of the text`. So the length of the text is read off exactly, in bytes: 43 for
  "NOT_FOUND - no exchange 'nope' in vhost '/'", 45 for "PRECONDITION_FAILED - unknown delivery tag 99", and so on.
  What else is answered in a cycle, as a rule, is confirm.select or basic.qos: one packet of 12 bytes.
- The client's bytes tell a publish with its body: more than 16 MiB (128 MiB before 4.0) where it is too large.

| loop | packets | bytes sent | bytes received | `queue_declared` |
|---|---|---|---|---|
| publish to a missing exchange (404), body of 100 bytes | 2 | 78 | 203 | 0 |
| acknowledgement of an unknown tag (406) | 2 | 80 | 72 | 0 |
| declare with other arguments (406) | 2 | 188 | 70 | 1 |
| publish without permission (403) | 2 | 119 (3.10), 125 (4.3) | 204 | 0 |
| consumer beside an exclusive one (403) | 2 | 98 | 92 | 0 |
| declare of another's exclusive queue (405) | 2 | 261 | 55 | 1 |
| message too large (406), with confirms | 3 | 134 | 17,827,000 | 0 |
| consume, and acknowledge twice (406) | 8 | 1000 | 157 | 0 |
| a channel for each publish, no fault of the broker's | 2 | 28 | 203 | 0 |
| a channel for each `basic.get` that finds nothing | 3 | 41 | 69 | 0 |

A client that ends the whole connection at each error shows as `connection_created` and `connection_closed`, and as
connections of one name that come and go; of their bytes nothing is told in time.
"""

from dataclasses import dataclass, replace

from ackscope.clock import Instant
from ackscope.findings import Subject
from ackscope.snapshot import Channel, Connection, Overview
from diagnosis.churn import churn_increase, churn_streak, churn_window
from diagnosis.contract import View
from diagnosis.facts import client_name
from diagnosis.loop_bytes import Cycle, active, cycle, increase
from diagnosis.loop_counts import (
    ANSWERS,
    OPENS_WITHIN,
    gained_messages,
    may_stay,
    messages_per_cycle,
    staying_channels,
    watched,
)
from diagnosis.memo import per_view
from diagnosis.probe_traffic import probe_traffic
from diagnosis.view import is_own
from diagnosis.window import Series

FEWEST = 3
"""Cycles that make a loop."""
OWN_RATE = 1.0
"""Channels closed a second, of the whole cluster, below which a loop is told only by the broker's error in its own
bytes while probes of ours run."""
_HEARTBEAT_SECONDS = 10.0
_SMALLEST_SHARE = 50
_WENT = 2
"""Connections of an application that must have gone: one goes at a restart, too."""
_ASKS = 12
"""Bytes that a client sends for each packet of the broker, in a loop: channel.open and close-ok have 13 and 12."""

Identity = tuple[str, str, str, str]
"""What stays the same when an application connects anew: its name, user, virtual host and peer host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnLoop:
    """One application that opens and closes in a loop.

    Attributes:
        connection: its connection; of those that come and go, the latest.
        client: the name that the application gave itself, else its library or its connection.
        whole: the connections themselves come and go, and not only channels of one that stays.
        alone: no other application of this cluster does the same, so that what the cluster counts is its doing.
        rate: cycles a second, of this application.
        lasts: seconds that the cluster's counters have shown a loop without a pause, as far as they are held.
        since: when that began.
        received, sent: bytes a cycle, as the broker counts them; None where they are not told (`whole`).
        packets: that the broker sent, a cycle; None likewise.
        error: length in bytes of the text with which the broker closes each channel; None where the client closes
            them itself, and where it cannot be told. Compare with `text_bytes`.
        by_broker: whether the broker closes the channels; None where that cannot be told.
        declares: declarations of queues a cycle that left none behind, by the cluster's count, refused ones too.
        published, delivered, acked, redelivered: messages a cycle, of the whole cluster but for what channels did that
            are there throughout; about 0 where every publish is refused. The broker renews counters by turns: take
            less than a third for nothing.
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
    declares: float = 0.0
    published: float = 0.0
    delivered: float = 0.0
    acked: float = 0.0
    redelivered: float = 0.0

    @property
    def subject(self) -> Subject:
        """What a finding about it is of: the connection; of those that come and go, the application by its name."""
        there = self.connection
        name = self.client if self.whole else there.name
        return Subject(kind="connection", name=name, vhost=there.vhost, node=None if self.whole else there.node)

    @property
    def peer(self) -> str:
        """Where it runs, `host:port`; "" where the broker does not say."""
        host, port = self.connection.peer_host, self.connection.peer_port
        return f"{host}:{port}" if host and port and not self.whole else host or ""

    def said(self, *texts: str) -> bool:
        """Whether the broker's error was as long as one of these texts."""
        return self.error is not None and self.error in {text_bytes(text) for text in texts}


def text_bytes(text: str) -> int:
    """How long the broker's text is on the wire: it cuts at 255 bytes."""
    return min(len(text.encode()), 255)


def churn_loops(view: View) -> tuple[ChurnLoop, ...]:
    """Applications that open and close channels or connections in a loop, the fastest first.

    Needs the parts overview, connections and channels; two readings of each at least.
    """
    return per_view(view, _closings)


def _closings(view: View) -> tuple[ChurnLoop, ...]:
    overviews: Series[Overview] = view.window.readings("overview")
    ends = churn_window(view, overviews)
    if ends is None:
        return ()
    first, latest = ends
    seconds = latest.at.since(first.at)
    found: list[ChurnLoop] = []
    closed = churn_increase(first.value, latest.value, "channel_closed")
    ended = churn_increase(first.value, latest.value, "connection_closed")
    began = churn_increase(first.value, latest.value, "connection_created")
    # Probes of ours close channels on purpose, and the cluster's counters hold those too; connections have names.
    own = probe_traffic(view)
    slowest = OWN_RATE if _probed(view) else 0.0
    cycles = closed - ended - own.closes * seconds
    if min(ended, began) >= FEWEST:
        found += _connections(view, overviews, min(ended, began) / seconds)
    if cycles >= FEWEST:
        loops = _channels(view, overviews, cycles / seconds, seconds)
        sure = closed - ended >= slowest * seconds
        found += [each for each in loops if sure or each.error is not None]
    if not found:
        return ()
    turns = max(1.0, closed - own.closes * seconds, min(ended, began))
    per_cycle = messages_per_cycle(view, first.at, turns / seconds, own)
    # A declaration that made a queue which stays is no loop's (seen: `queue-leak` on 3.10.8).
    declared, created, deleted = (
        churn_increase(first.value, latest.value, f"queue_{word}") for word in ("declared", "created", "deleted")
    )
    vain = declared - max(0, created - deleted)
    declares = (vain - own.declares * seconds) / turns
    alone = len(found) == 1
    whole = [
        replace(
            each,
            alone=alone,
            declares=max(0.0, declares),
            published=per_cycle["publish"],
            delivered=per_cycle["deliver_get"],
            acked=per_cycle["ack"],
            redelivered=per_cycle["redeliver"],
        )
        for each in found
    ]
    return tuple(sorted(whole, key=lambda each: (-each.rate, each.connection.name)))


def _connections(view: View, overviews: Series[Overview], rate: float) -> list[ChurnLoop]:
    """Applications of which connections came and went between the readings."""
    groups: dict[Identity, dict[str, Connection]] = {}
    lasting = _everywhere(view)
    own = {connection.name for connection in view.connections}
    for seen in view.window.readings("connections"):
        for connection in seen.value:
            if connection.name in lasting or (seen.value is view.part("connections") and connection.name not in own):
                continue
            groups.setdefault(identity(connection), {})[connection.name] = connection
    readings = view.window.readings("connections")
    latest_names = {connection.name for connection in readings[-1].value}
    fewest = min(_WENT, len(readings) - 1)
    came = {
        key: known
        for key, known in groups.items()
        if len(known) >= 2 and len(known.keys() - latest_names) >= fewest and not _is_own(key)
    }
    total = sum(len(known) for known in came.values())
    spell = churn_streak(view, overviews, "connection_closed", rate)
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


def identity(connection: Connection) -> Identity:
    """What stays the same when an application connects anew."""
    name = connection.client_name or connection.client_product or ""
    return (name, connection.user or "", connection.vhost or "", connection.peer_host or "")


def _probed(view: View) -> bool:
    return any(is_own(connection) for connection in view.part("connections"))


def _is_own(key: Identity) -> bool:
    return key[0].startswith("ackscope-")


def _everywhere(view: View) -> frozenset[str]:
    """Names of connections that each reading holds."""
    held = [frozenset(each.name for each in seen.value) for seen in view.window.readings("connections")]
    return frozenset.intersection(*held) if held else frozenset()


def _channels(view: View, overviews: Series[Overview], rate: float, seconds: float) -> list[ChurnLoop]:
    """Connections that stay while their channels come and go."""
    staying = staying_channels(view)
    listed = {channel.connection_name for channel in view.channels}
    strong: list[tuple[Series[Connection], int]] = []
    weak: list[tuple[Series[Connection], int]] = []
    for connection in view.connections:
        history = watched(view, connection.name)
        if len(history) < 2:
            continue
        new = history[-1].at.since(history[0].at) <= OPENS_WITHIN
        unsure = connection.name in listed and connection.name not in staying
        if unsure and (new or may_stay(view, connection.name)):
            # Its channel may be there to stay: the next reading tells.
            continue
        packets, _, received = increase(history[0].value, history[-1].value)
        sent = min(packets, received // _ASKS)
        answered = sum(gained_messages(*pair, *ANSWERS) for pair in staying.get(connection.name, ()))
        unexplained = sent - answered - round(history[-1].at.since(history[0].at) / _HEARTBEAT_SECONDS)
        if unexplained >= 2 * FEWEST:
            (weak if connection.name in staying else strong).append((history, unexplained))
    # Where connections without a lasting channel account for the cycles, those with one are none of it.
    suspects = strong or (weak if len(weak) == 1 else [])
    total = sum(unexplained for _, unexplained in suspects)
    suspects = [(history, unexplained) for history, unexplained in suspects if unexplained >= total / _SMALLEST_SHARE]
    spell = churn_streak(view, overviews, "channel_closed", rate)
    return [
        _loop_of(
            history,
            rate * unexplained / total,
            staying.get(history[-1].value.name, []),
            spell,
            alone=len(suspects) == 1,
        )
        for history, unexplained in suspects
        if rate * seconds * unexplained / total >= FEWEST
    ]


def _loop_of(
    history: Series[Connection],
    rate: float,
    staying: list[tuple[Channel, Channel]],
    spell: Series[Overview],
    *,
    alone: bool,
) -> ChurnLoop:
    """What its packets and bytes say of the cycles; nothing where lasting channels have a part in them."""
    history = active(history)
    newer, seconds = history[-1].value, history[-1].at.since(history[0].at)
    turn = Cycle() if staying else cycle(history, rate * seconds, alone=alone)
    if turn.error is not None and turn.packets:
        # Its own count of cycles: the cluster's may hold those of others.
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
    )

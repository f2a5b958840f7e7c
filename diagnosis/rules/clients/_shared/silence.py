"""Connections from which the broker receives nothing for longer than their heartbeat allows.

Three laws. A connection whose bytes stood still over the readings for longer than its heartbeat is silent. Readings go
back half a minute only, so consumers with automatic acknowledgement are judged by two more: by how long the window has
followed that nothing came (`Connection.quiet_since`), and by their siblings. Such a consumer sends nothing but its
handshake and heartbeats, and connections of one application have the same handshake. One that has sent exactly as many
bytes as a younger one had sent, and was older by more than a heartbeat, has missed the heartbeats of that time.
Ages are differences of `connected_at` on one node, so the clock of the exporter does not matter. Libraries send a
heartbeat every half interval, and some every interval; a healthy client is quiet in between.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Connection, Consumer
from diagnosis.contract import View
from diagnosis.memo import per_view
from diagnosis.series import span, stretch
from diagnosis.window import Series, Timestamped

_REFRESH_SECONDS = 5.0
"""The broker refreshes the bytes of a connection this often, so silence may look longer by this much."""

_READING_STATES = (None, "running")
"""The broker reads nothing from a connection in another state (blocked, flow)."""

ClientReadings = Series[tuple[Connection, ...]]
Histories = dict[str, Series[Connection]]


@dataclass(frozen=True, slots=True)
class SilentConnection:
    """A connection from which the broker received nothing for longer than its heartbeat.

    Attributes:
        seconds: seconds of silence, at least.
        since: when it was silent already.
        closed: whether the connection has been closed since.
        sent_to: whether the broker may have sent to it meanwhile.
        sibling: the younger connection that it was compared with; None if its own readings show the silence.
    """

    connection: Connection
    seconds: float
    since: Instant
    closed: bool
    sent_to: bool
    sibling: str | None = None


def silent_connections(view: View) -> Iterator[SilentConnection]:
    """Yield the connections that were silent for too long, in their latest reading."""
    readings: ClientReadings = view.window.readings("connections")
    if len(readings) < 2:
        return
    histories = _still(readings)
    consumers = auto_ack_consumers(view) if histories else {}
    sent_to = {name: history for name, history in histories.items() if name in consumers and _is_sent_to(history)}
    siblings = _siblings(view, readings, sent_to, consumers)
    for name, history in sorted(histories.items()):
        last, seconds = history[-1], span(history)
        closed = last.at != readings[-1].at
        if not closed and view.connection(name) is None:
            continue
        if name in sent_to:
            fresh = _freshest(history)
            seconds = max(seconds, fresh.at.since(fresh.value.quiet_since or fresh.at))
        if seconds >= silence_limit(view, last.value):
            yield SilentConnection(last.value, seconds, _before(last.at, seconds), closed, _sent_more(history))
        elif name in siblings:
            sibling, seconds = siblings[name]
            yield SilentConnection(
                last.value, seconds, _before(last.at, seconds), closed, sent_to=True, sibling=sibling
            )


def silence_limit(view: View, connection: Connection) -> float:
    """Return the seconds of silence that are too long, including the broker's refresh interval."""
    return (connection.heartbeat or 0) * view.thresholds.clients.silent_heartbeats + _REFRESH_SECONDS


def auto_ack_consumers(view: View) -> dict[str, dict[str, Consumer]]:
    """Return the consumers of each connection all of whose consumers acknowledge automatically, by channel and tag."""
    return per_view(view, _auto_ack_consumers)


def _auto_ack_consumers(view: View) -> dict[str, dict[str, Consumer]]:
    found: dict[str, dict[str, Consumer]] = defaultdict(dict)
    manual: set[str | None] = set()
    for seen in view.window.readings("consumers"):
        for each in seen.value:
            if each.ack_required is False and each.connection_name:
                found[each.connection_name][f"{each.channel_name} {each.tag}"] = each
            else:
                manual.add(each.connection_name)
    return {name: consumers for name, consumers in found.items() if name not in manual}


def _before(at: Instant, seconds: float) -> Instant:
    return Instant(wall=at.wall - seconds, mono=at.mono - seconds)


def _still(readings: ClientReadings) -> Histories:
    """Return the latest readings of each judged connection in which nothing was received from it; two at least."""
    latest: dict[str, Connection] = {}
    suspects: set[str] = set()
    for seen in reversed(readings):
        for connection in seen.value:
            newer = latest.get(connection.name)
            if newer is None:
                latest[connection.name] = connection
            # A cheap filter: only connections without a byte between some reading and the last are checked closely.
            elif connection.recv_oct == newer.recv_oct and _is_judged(newer):
                suspects.add(connection.name)
    histories: dict[str, list[Timestamped[Connection]]] = defaultdict(list)
    for seen in readings if suspects else ():
        for connection in seen.value:
            if connection.name in suspects:
                histories[connection.name].append(Timestamped(seen.at, connection))
    return {name: still for name, each in histories.items() if len(still := stretch(tuple(each), _unheard)) > 1}


def _unheard(older: Timestamped[Connection], newer: Timestamped[Connection]) -> bool:
    return older.value.recv_oct == newer.value.recv_oct


def _is_judged(connection: Connection) -> bool:
    return (
        bool(connection.heartbeat)
        and (connection.protocol or "").startswith("AMQP")
        and connection.recv_oct is not None
        and not (connection.client_name or "").startswith("ackscope-")
    )


def _siblings(
    view: View, readings: ClientReadings, suspects: Histories, consumers: dict[str, dict[str, Consumer]]
) -> dict[str, tuple[str, float]]:
    """Return suspects that a younger sibling shows to be silent for too long: which, and the seconds."""
    if not suspects:
        return {}
    shapes = {name: _shape(history[-1].value, consumers[name]) for name, history in suspects.items()}
    wanted = set(shapes.values())
    # The earliest reading in which a connection of a shape had sent so many bytes, as the birth that it would have had.
    youngest: dict[Hashable, dict[str, float]] = defaultdict(dict)
    for seen in readings:
        for each in seen.value:
            if each.name in consumers and each.connected_at is not None and each.recv_oct is not None:
                shape = _shape(each, consumers[each.name])
                if shape in wanted:
                    youngest[shape, each.recv_oct].setdefault(each.name, each.connected_at - seen.at.mono)
    found: dict[str, tuple[str, float]] = {}
    for name, history in suspects.items():
        fresh = _freshest(history)
        born = (fresh.value.connected_at or 0.0) - fresh.at.mono
        others = {each: at - born for each, at in youngest[shapes[name], fresh.value.recv_oct].items() if each != name}
        if others:
            sibling = max(sorted(others), key=lambda each: others[each])
            if others[sibling] >= silence_limit(view, fresh.value):
                found[name] = (sibling, others[sibling])
    return found


def _is_sent_to(history: Series[Connection]) -> bool:
    """Return whether the broker surely reads from a connection, and sent to it while it was silent."""
    last = history[-1].value
    known = last.connected_at is not None and None not in (history[0].value.send_oct, last.send_oct)
    return known and last.state in _READING_STATES and _sent_more(history)


def _sent_more(history: Series[Connection]) -> bool:
    """Return whether the broker sent bytes to a connection over the readings; also if it does not report them."""
    older, newer = history[0].value.send_oct, history[-1].value.send_oct
    return older is None or newer is None or newer > older


def _freshest(history: Series[Connection]) -> Timestamped[Connection]:
    """Return the latest reading that shows a change, because later ones may repeat old statistics."""
    repeated = stretch(history, lambda older, newer: older.value.send_oct == newer.value.send_oct)
    return repeated[0]


def _shape(connection: Connection, consumers: dict[str, Consumer]) -> Hashable:
    """Return what connections must have in common for a handshake of the same length, and one clock."""
    asked = sorted((each.queue, len(each.tag), each.prefetch_count or 0) for each in consumers.values())
    return (
        connection.node,
        connection.client_name,
        connection.client_product,
        connection.user,
        connection.vhost,
        connection.protocol,
        connection.heartbeat,
        connection.tls,
        connection.auth_mechanism,
        connection.channels,
        tuple(asked),
    )

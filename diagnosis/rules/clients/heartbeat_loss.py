"""heartbeat-loss (X08): clients that stopped sending heartbeats, so the broker closes their connections.

A client must send something within each heartbeat interval; libraries send twice per interval. If the broker receives
nothing for two intervals, it closes the connection and redelivers the client's unacknowledged messages to others.
The client was frozen or cut off from the network, or one message kept it too busy to serve its connection.
Only heartbeats shorter than the readings of connections can be judged: half a minute (six readings) with a poll every
5 s.
Source: https://www.rabbitmq.com/docs/heartbeats
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, Severity, Subject, Unit, source
from ackscope.snapshot import Connection
from diagnosis.churn_loops import identity
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.window import Series, Timestamped

NAME = "heartbeat-loss"

# The broker refreshes the bytes of a connection this often, so silence may look longer by this much.
_REFRESH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SilentConnection:
    """A connection from which the broker received nothing for longer than its heartbeat.

    Attributes:
        seconds: seconds of silence within the window.
        since: the reading after which nothing was received.
        closed: whether the connection has been closed since.
    """

    connection: Connection
    seconds: float
    since: Instant
    closed: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding per application, with its silent connections and those closed because of silence."""
    readings: Series[tuple[Connection, ...]] = view.window.readings("connections")
    if len(readings) < 2:
        return
    watched_seconds = readings[-1].at.since(readings[0].at)
    current = {connection.name for connection in view.connections}
    too_long = sum(_limit(view, each) > watched_seconds for each in view.connections if each.heartbeat)
    if too_long:
        facts = {"connections": too_long, "watched_seconds": watched_seconds}
        yield Inconclusive(rule=NAME, reason="heartbeat_too_long", facts=facts, permanent=True)
    found: dict[tuple[str, str, str, str], list[SilentConnection]] = {}
    for silent in _silent_connections(view, readings):
        if silent.closed or silent.connection.name in current:
            found.setdefault(identity(silent.connection), []).append(silent)
    for _, group in sorted(found.items()):
        yield _finding(view, sorted(group, key=lambda each: each.connection.name))


def _limit(view: View, connection: Connection) -> float:
    """Return the seconds of silence that are too long, including the broker's refresh interval."""
    return (connection.heartbeat or 0) * view.thresholds.clients.silent_heartbeats + _REFRESH_SECONDS


def _silent_connections(view: View, readings: Series[tuple[Connection, ...]]) -> Iterator[SilentConnection]:
    """Connections that were silent for too long, in their latest reading."""
    watched_seconds = readings[-1].at.since(readings[0].at)
    latest: dict[str, Connection] = {}
    suspects: set[str] = set()
    for seen in reversed(readings):
        for connection in seen.value:
            newer = latest.get(connection.name)
            if newer is None:
                latest[connection.name] = connection
            # A cheap filter: only connections without a byte between some reading and the last are checked closely.
            elif connection.recv_oct == newer.recv_oct and _judged(newer) and _limit(view, newer) <= watched_seconds:
                suspects.add(connection.name)
    histories: dict[str, list[Timestamped[Connection]]] = {}
    for seen in readings if suspects else ():
        for connection in seen.value:
            if connection.name in suspects:
                histories.setdefault(connection.name, []).append(Timestamped(seen.at, connection))
    for history in histories.values():
        last = history[-1]
        since = last.at
        for older, newest in reversed(list(pairwise(history))):
            if older.value.recv_oct != newest.value.recv_oct:
                break
            since = older.at
        seconds = last.at.since(since)
        if seconds >= _limit(view, last.value):
            yield SilentConnection(last.value, seconds, since, closed=last.at != readings[-1].at)


def _judged(connection: Connection) -> bool:
    return (
        bool(connection.heartbeat)
        and (connection.protocol or "").startswith("AMQP")
        and connection.recv_oct is not None
        and not (connection.client_name or "").startswith("ackscope-")
    )


def _finding(view: View, group: list[SilentConnection]) -> Finding:
    first = group[0].connection
    name = client_name(first) or first.name
    closed = sum(each.closed for each in group)
    longest = max(each.seconds for each in group)
    names = {each.connection.name for each in group}
    unacked = sum(each.messages_unacked or 0 for each in view.channels if each.connection_name in names)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="connection", name=name, vhost=first.vhost, node=first.node),
        since=min(group, key=lambda each: each.since.mono).since.iso(),
        facts={
            "client": name,
            "host": first.peer_host,
            "user": first.user,
            "connections": len(group),
            "closed": closed,
            "heartbeat_seconds": first.heartbeat,
            "silent_seconds": longest,
            "unacked": unacked,
        },
        evidence=(
            Evidence(
                key="silence",
                value=longest,
                unit=Unit.SECONDS,
                source=source("/api/connections", "recv_oct", "timeout"),
            ),
            Evidence(key="closed", value=closed, source=source("/api/connections")),
            Evidence(
                key="unacked",
                value=unacked,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
        ),
        involved=involved_connections(each.connection for each in group),
        certainty=Certainty.CERTAIN,
        seen_seconds=longest,
    )

"""heartbeat-loss (X08): clients whose heartbeats stay out, so that the broker gives their connections up.

A client promises to send something within each heartbeat, and libraries do so twice. When the broker hears nothing for
two heartbeats, it closes the connection: what the client held is delivered again, to another. The client was frozen or
cut off, or it worked so long on one message that it did not serve its connection.
Only heartbeats shorter than the time for which connections are held can be judged: a readings' time of half a minute
(six polls) with a poll every 5 s.
Source: https://www.rabbitmq.com/docs/heartbeats
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, InconclusiveReport, runbook
from ackscope.snapshot import Connection
from diagnosis.closing import identity
from diagnosis.contract import RuleResult, View
from diagnosis.window import Seen, Series
from diagnosis.words import amount, client, lasting

NAME = "heartbeat-loss"

_RENEWED_SECONDS = 5.0
"""The broker renews a connection's bytes so often: silence may seem that much longer than it is."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A connection of which nothing was heard for longer than its heartbeat.

    Attributes:
        seconds: of silence, as far as it was watched.
        since: the reading after which nothing came.
        gone: it is closed by now.
    """

    connection: Connection
    seconds: float
    since: Instant
    gone: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """One finding for each application, with those that are silent now and those that were closed for it."""
    readings: Series[tuple[Connection, ...]] = view.window.readings("connections")
    if len(readings) < 2:
        return
    held = readings[-1].at.since(readings[0].at)
    own = {connection.name for connection in view.connections}
    beating = [each for each in view.connections if each.heartbeat]
    late = sum(_limit(view, each) > held for each in beating)
    if late:
        yield InconclusiveReport(
            rule=NAME,
            because=f"{amount(late, 'connection')} with heartbeats too far apart for the {lasting(held)} that are held",
            needs="heartbeats of 10 to 15 s in the clients; that is what finds a dead one soon, too",
            permanent=True,
        )
    found: dict[tuple[str, str, str, str], list[Silence]] = {}
    for silence in _silences(view, readings):
        if silence.gone or silence.connection.name in own:
            found.setdefault(identity(silence.connection), []).append(silence)
    for _, silences in sorted(found.items()):
        yield _finding(view, sorted(silences, key=lambda each: each.connection.name))


def _limit(view: View, connection: Connection) -> float:
    """Seconds of silence that are too long, with what the broker's figures lag behind."""
    return (connection.heartbeat or 0) * view.thresholds.clients.silent_heartbeats + _RENEWED_SECONDS


def _silences(view: View, readings: Series[tuple[Connection, ...]]) -> Iterator[Silence]:
    """Connections that were silent for longer than they promised, in their latest reading."""
    held = readings[-1].at.since(readings[0].at)
    latest: dict[str, Connection] = {}
    suspects: set[str] = set()
    for seen in reversed(readings):
        for connection in seen.value:
            newer = latest.get(connection.name)
            if newer is None:
                latest[connection.name] = connection
            # Cheap: only who said nothing from any reading to the last is looked at closely.
            elif connection.recv_oct == newer.recv_oct and _limit(view, newer) <= held:
                suspects.add(connection.name)
    histories: dict[str, list[Seen[Connection]]] = {}
    for seen in readings if suspects else ():
        for connection in seen.value:
            if connection.name in suspects:
                histories.setdefault(connection.name, []).append(Seen(seen.at, connection))
    for history in histories.values():
        last = history[-1]
        if not _judged(last.value):
            continue
        since = last.at
        for older, newest in reversed(list(pairwise(history))):
            if older.value.recv_oct != newest.value.recv_oct:
                break
            since = older.at
        seconds = last.at.since(since)
        if seconds >= _limit(view, last.value):
            yield Silence(last.value, seconds, since, gone=last.at != readings[-1].at)


def _judged(connection: Connection) -> bool:
    return (
        bool(connection.heartbeat)
        and (connection.protocol or "").startswith("AMQP")
        and connection.recv_oct is not None
        and not (connection.client_name or "").startswith("ackscope-")
    )


def _finding(view: View, silences: list[Silence]) -> FindingReport:
    one = silences[0].connection
    name, since = client(one, one.name), min(silences, key=lambda each: each.since.mono).since
    gone = sum(each.gone for each in silences)
    longest = max(each.seconds for each in silences)
    held = sum(
        channel.messages_unacked or 0
        for channel in view.channels
        if channel.connection_name in {each.connection.name for each in silences}
    )
    state = "was given up" if gone == len(silences) else "is given up soon" if not gone else "is being given up"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="connection", name=name, vhost=one.vhost, node=one.node),
        since=since.iso(),
        summary=(
            f"nothing came from {name!r} at {one.peer_host or 'an unknown host'} for {lasting(longest)} "
            f"({amount(len(silences), 'connection')}, heartbeat {one.heartbeat} s): the connection {state}, "
            "and what it held is delivered again"
        ),
        cause=(
            "The client does not serve its connection: frozen, cut off from the network, or busy with one message for "
            "longer than its heartbeat."
        ),
        evidence=(
            EvidenceReport(
                what="silence",
                value=f"{lasting(longest)} at least",
                expected=f"something every {(one.heartbeat or 0) / 2:g} s",
                source="/api/connections recv_oct, timeout",
            ),
            EvidenceReport(
                what="connections given up lately", value=f"{gone}", expected="0", source="/api/connections"
            ),
            EvidenceReport(
                what="held by the silent ones",
                value=amount(held, "message"),
                source="/api/channels messages_unacknowledged",
            ),
        ),
        next_steps=(
            "read the broker's log: grep -h 'missed heartbeats from client' /var/log/rabbitmq/*.log | tail -5",
            f"look at {name!r}: does its process run, is its host paused or out of memory, are packets lost?",
            "it works long on one message: serve the connection in a thread of its own, or take less at once",
            "behind a load balancer or a firewall: see that it does not drop idle connections silently",
        ),
        runbook=runbook(NAME),
    )

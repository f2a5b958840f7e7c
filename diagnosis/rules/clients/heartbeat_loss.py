"""heartbeat-loss (X08): clients that stopped sending heartbeats, so the broker closes their connections.

A client must send something within each heartbeat interval; libraries send twice per interval. If the broker receives
nothing for two intervals, it closes the connection and redelivers the client's unacknowledged messages to others.
The client was frozen or cut off from the network, or one message kept it too busy to serve its connection.

With automatic acknowledgement nothing is redelivered, and the broker goes on sending: what it sends meanwhile is gone
if the client is. That is critical, because it lasts until the broker closes the connection.

A connection that never published, got or consumed anything, such as that of a script that declared queues and waits,
is information: nothing breaks when it is closed.
`_shared/silence.py` has the laws, and which heartbeats can be judged.
Source: https://www.rabbitmq.com/docs/heartbeats
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Finding, Inconclusive, QueueRef, Severity, Subject, Unit, source
from ackscope.protocols import native_protocol
from ackscope.snapshot import Channel, Connection, Consumer
from diagnosis.churn_loops import identity
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name
from diagnosis.relations import INVOLVED_QUEUES, both
from diagnosis.rules.clients._shared.connections import involved_connections
from diagnosis.rules.clients._shared.silence import (
    SilentConnection,
    auto_ack_consumers,
    silence_limit,
    silent_connections,
)
from diagnosis.rules.consumers._shared.objects import connection_peer
from diagnosis.series import count, readings_since, span
from diagnosis.window import Series

NAME = "heartbeat-loss"

ChannelReadings = Series[tuple[Channel, ...]]


@dataclass(frozen=True, slots=True)
class SentWhileSilent:
    """What was sent with automatic acknowledgement to clients that were silent.

    Attributes:
        queues: the queues that they consume from, without exclusive and auto-delete ones.
        messages: messages sent while they were silent and watched.
        seconds: for how long they were watched.
        since_opened: messages sent since their channels were opened.
        share: of all messages that these queues sent to consumers meanwhile; None if some of their connections consume
            from other queues, too.
    """

    queues: tuple[QueueRef, ...]
    messages: int
    seconds: float
    since_opened: int
    share: float | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding per application, with its silent connections and those closed because of silence."""
    readings = view.window.readings("connections")
    if len(readings) < 2:
        return
    watched_seconds = span(readings)
    found: dict[tuple[str, str, str, str], list[SilentConnection]] = {}
    every = list(silent_connections(view))
    idle = {each.connection.name for each in every if _is_idle(view, each.connection)}
    missed = {identity(each.connection) for each in every if each.connection.name not in idle}
    for silent in every:
        name, user, vhost, host = identity(silent.connection)
        # No virtual host misses a client that moves nothing.
        place = vhost if (name, user, vhost, host) in missed else ""
        found.setdefault((name, user, place, host), []).append(silent)
    silent_names = {each.connection.name for group in found.values() for each in group}
    open_ones = (each for each in view.connections if each.heartbeat and each.name not in silent_names)
    too_long = sum(silence_limit(view, each) > watched_seconds for each in open_ones)
    if too_long:
        facts = {"connections": too_long, "watched_seconds": watched_seconds}
        yield Inconclusive(rule=NAME, reason="heartbeat_too_long", facts=facts, permanent=True)
    for _, group in sorted(found.items()):
        yield _finding(view, group, idle=all(each.connection.name in idle for each in group))


def _is_idle(view: View, connection: Connection) -> bool:
    """Return whether all channels of a connection are known, and moved no message since they were opened."""
    if native_protocol(connection.protocol) or connection.channels is None:
        return False
    readings = view.window.readings("channels")
    seen = ([each for each in past.value if each.connection_name == connection.name] for past in reversed(readings))
    channels: list[Channel] = next((found for found in seen if found), [])
    return len(channels) == connection.channels and not any(
        each.consumer_count or each.messages_unacked or count(each.stats, "publish", "deliver_get", "get_empty")
        for each in channels
    )


SAME_QUEUES = both(INVOLVED_QUEUES.of_cause)
"""The cause is a silent client to which messages of a queue are sent; the effect involves that queue."""


def _sent_while_silent(view: View, group: list[SilentConnection]) -> SentWhileSilent | None:
    """Return what was sent to silent connections with automatic acknowledgement; None if that is nothing, or little."""
    consumers = auto_ack_consumers(view)
    since = {each.connection.name: each.since for each in group if each.sent_to and each.connection.name in consumers}
    queues = {(each.vhost, each.queue) for name in since for each in consumers[name].values() if _lasts(view, each)}
    if not queues:
        return None
    seen_since = {name: readings_since(view.window.readings("channels"), at.mono) for name, at in since.items()}
    counts = [_sent(readings, {name}, "deliver_no_ack") for name, readings in seen_since.items()]
    sent, since_opened = (sum(each) for each in zip(*counts, strict=True))
    readings = max(seen_since.values(), key=len)
    if sent < view.thresholds.queues.loss_least:
        return None
    refs = tuple(QueueRef(*key) for key in sorted(queues))
    return SentWhileSilent(refs, sent, span(readings), since_opened, _share(view, readings, queues, sent))


def _share(view: View, readings: ChannelReadings, queues: set[tuple[str, str]], sent: int) -> float | None:
    consumed: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for seen in view.window.readings("consumers"):
        for each in seen.value:
            consumed[each.connection_name or ""].add((each.vhost, each.queue))
    here = {name for name, each in consumed.items() if each & queues}
    if any(consumed[name] - queues for name in here):
        return None
    every, _ = _sent(readings, here, "deliver", "deliver_no_ack")
    return sent / max(sent, every)


def _lasts(view: View, consumer: Consumer) -> bool:
    """Return whether the queue of a consumer outlives it: the messages of other queues go with their client anyway."""
    queue = view.any_queue(consumer.vhost, consumer.queue)
    return queue is None or not (queue.exclusive or queue.auto_delete)


def _sent(readings: ChannelReadings, names: set[str], *counters: str) -> tuple[int, int]:
    """Return what was sent to some connections: over the readings, and since their channels were opened."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for seen in readings:
        for each in seen.value:
            if each.connection_name in names:
                sent = count(each.stats, *counters)
                first.setdefault(each.name, sent)
                last[each.name] = max(sent, last.get(each.name, 0))
    total = sum(last.values())
    return total - sum(first.values()), total


def _finding(view: View, group: list[SilentConnection], *, idle: bool) -> Finding:
    first = group[0].connection
    name = client_name(first) or first.name
    closed = sum(each.closed for each in group)
    longest = max(group, key=lambda each: each.seconds)
    compared = next((each for each in (longest, *group) if each.sibling), None)
    names = {each.connection.name for each in group}
    unacked = sum(each.messages_unacked or 0 for each in view.channels if each.connection_name in names)
    sent = _sent_while_silent(view, group)
    evidence = [
        Evidence(
            key="silence",
            value=longest.seconds,
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
    ]
    if compared:
        evidence.append(
            Evidence(
                key="sibling",
                value=compared.seconds,
                unit=Unit.SECONDS,
                source=source("/api/connections", "recv_oct", "connected_at"),
                facts={
                    "silent": compared.connection.name,
                    "sibling": compared.sibling,
                    "received_bytes": compared.connection.recv_oct,
                },
            )
        )
    if sent:
        evidence.append(
            Evidence(
                key="sent",
                value=sent.messages,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.deliver_no_ack")
                + source("/api/consumers", "ack_required"),
            )
        )
    involved = involved_connections(each.connection for each in group)
    severity = Severity.INFO if idle else Severity.WARNING
    together = {each.connection.vhost for each in group} == {first.vhost}
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if sent and closed < len(group) else severity,
        subject=Subject(kind="connection", name=name, vhost=first.vhost if together else None, node=first.node),
        since=min(group, key=lambda each: each.since.mono).since.iso(),
        facts={
            "client": name,
            "host": first.peer_host,
            "peers": sorted({peer for each in group if (peer := connection_peer(each.connection))}),
            "user": first.user,
            "vhost": first.vhost,
            "idle": idle,
            "connections": len(group),
            "open_connections": [each.connection.name for each in group if not each.closed],
            "closed": closed,
            "heartbeat_seconds": first.heartbeat,
            "silent_seconds": longest.seconds,
            "unacked": unacked,
            "queues": [each.name for each in sent.queues] if sent else [],
            "sent": sent.messages if sent else 0,
            "sent_seconds": sent.seconds if sent else None,
            "sent_share": sent.share if sent else None,
            "sent_since_opened": sent.since_opened if sent else 0,
        },
        evidence=tuple(evidence),
        involved=replace(involved, queues=sent.queues) if sent else involved,
        certainty=Certainty.LIKELY if sent or compared else Certainty.CERTAIN,
        seen_seconds=longest.seconds,
    )

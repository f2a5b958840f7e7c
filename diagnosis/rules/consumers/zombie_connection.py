"""zombie-connection (B09): the broker closed a consumer's channel, and the application did not notice.

Its connection is open and sends heartbeats, but has no channel; the application believes that it consumes. A
connection pool that opens channels on demand looks the same, so only a connection that consumed is reported: its
consumer was seen, or it was connected when a queue of its virtual host lost its last consumer.
Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, source
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.connections import has_channels
from diagnosis.rules.consumers._shared.comings import was_cancelled
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.objects import connection_peer, connection_subject
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

NAME = "zombie-connection"

_HEARTBEAT_BYTES = 8
_POOL_SIZE = 3
"""Maximum connections without a channel; more of them are a connection pool."""


@dataclass(frozen=True, slots=True)
class Zombie:
    """A connection without channels that consumed.

    Attributes:
        consumer_seen: its channel was seen consuming; otherwise it was connected when a queue lost its consumer.
        queues: queues that lost their last consumer while it was connected.
        since: wall clock, seconds since 1970.
    """

    connection: Connection
    consumer_seen: bool
    queues: tuple[Queue, ...]
    since: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection without channels."""
    for zombie in per_view(view, _zombies):
        yield _finding(view, zombie)


def _zombies(view: View) -> tuple[Zombie, ...]:
    return tuple(_find(view))


def _queues_left(view: View, finding: Finding) -> Iterable[Hashable]:
    mine = (each for each in per_view(view, _zombies) if each.connection.name == finding.subject.name)
    return {queue.key for zombie in mine for queue in zombie.queues}


QUEUES_WITHOUT_THEIR_CONSUMER = Relation(_queues_left, queue_key)
"""The cause is a connection that lost its consumer; the effect is about a queue that it consumed from."""


def _find(view: View) -> Iterator[Zombie]:
    idle = [each for each in view.connections if each.channels == 0 and has_channels(each)]
    if not idle:
        return
    lost, consumers = _lost_consumer(view), _consumers_seen(view)
    readings = view.window.readings("channels")
    consumed = {
        channel.connection_name: seen.at.wall
        for seen in readings
        for channel in seen.value
        if channel.consumer_count and channel.connection_name
    }
    idle_in_vhost = Counter(each.vhost for each in idle)
    cancelled = {each.vhost for each in view.channels if was_cancelled(each)}
    for connection in idle:
        bare = stretch(view.connection_history(connection.name), _no_channel)
        if span(bare) < view.thresholds.early or not _only_heartbeats(bare[0].value, connection, span(bare)):
            continue
        began = connection.connected_at
        left = [
            (at, queue)
            for at, queue in lost.get(connection.vhost or "", ())
            if began is not None
            and began < at <= bare[-1].at.wall
            # Where the consumers of the queue were seen, it lost none but these.
            and connection.name in consumers.get(queue.key, {connection.name})
        ]
        seen = connection.name in consumed
        # A channel that consumed and has no consumer explains as much, and has more to show for it.
        ambiguous = connection.vhost in cancelled or idle_in_vhost[connection.vhost] > _POOL_SIZE
        if not seen and (not left or ambiguous):
            continue
        since = consumed[connection.name] if seen else max(at for at, _ in left)
        yield Zombie(connection, seen, tuple(queue for _, queue in left), since)


def _no_channel(older: Timestamped[Connection], newer: Timestamped[Connection]) -> bool:
    return older.value.channels == newer.value.channels == 0


def _only_heartbeats(older: Connection, newer: Connection, seconds: float) -> bool:
    """Return whether the broker received nothing but heartbeats from the connection."""
    if older.recv_oct is None or newer.recv_oct is None:
        return True
    heartbeats = seconds / max((newer.heartbeat or 60) / 2, 1) + 2
    return newer.recv_oct - older.recv_oct <= heartbeats * _HEARTBEAT_BYTES


def _lost_consumer(view: View) -> dict[str, list[tuple[float, Queue]]]:
    """Return, by virtual host, queues that recently lost their last consumer, and when it was last seen.

    Counters may restart when a channel closes, so all readings are used, not only those since the last restart.
    """
    bare = {queue.key: queue for queue in view.queues if queue.consumers == 0}
    had: dict[tuple[str, str], float] = {}
    for seen in view.window.readings("queues") if bare else ():
        had.update({each.key: seen.at.wall for each in seen.value if each.consumers and each.key in bare})
    found: dict[str, list[tuple[float, Queue]]] = {}
    for key, at in had.items():
        found.setdefault(key[0], []).append((at, bare[key]))
    return found


def _consumers_seen(view: View) -> dict[tuple[str, str], set[str | None]]:
    """Return the connections of the consumers that each queue had in the readings of consumers."""
    found: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for seen in view.window.readings("consumers"):
        for each in seen.value:
            found[each.vhost, each.queue].add(each.connection_name)
    return found


def _finding(view: View, zombie: Zombie) -> Finding:
    connection = zombie.connection
    seconds, warning_after = view.now.wall - zombie.since, view.thresholds.consumers.zombie_for
    late = seconds >= warning_after and bool(zombie.queues)
    before = (
        source("/api/channels", "consumer_count")
        if zombie.consumer_seen
        else source("/api/connections", "connected_at")
    )
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=connection_subject(connection),
        facts={
            "client": client_name(connection),
            "peer": connection_peer(connection),
            "queues": [queue.name for queue in zombie.queues],
            "consumer_seen": zombie.consumer_seen,
            "without_channel_seconds": seconds,
            "warning_after_seconds": warning_after,
        },
        evidence=(
            Evidence(key="channels", value=0, source=source("/api/connections", "channels")),
            Evidence(key="before", source=before),
            Evidence(key="received", value="heartbeats only", source=source("/api/connections", "recv_oct")),
        ),
        involved=Involved(
            queues=tuple(map(queue_ref, zombie.queues)),
            connections=(connection.name,),
            clients=(connection.client_name,) if connection.client_name else (),
        ),
        certainty=Certainty.LIKELY if late or not zombie.queues else Certainty.EARLY,
        seen_seconds=seconds,
    )

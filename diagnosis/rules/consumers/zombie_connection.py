"""zombie-connection (B09): the broker closed a consumer's channel, and the application did not notice.

Its connection lives, heartbeats and all, with no channel; the application believes that it consumes. A pool that
opens channels when it needs them looks the same, so only a connection that consumed is told: seen to, or there when
a queue of its virtual host lost its last consumer.
Source: https://www.rabbitmq.com/docs/channels#error-handling
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.kept import kept
from diagnosis.series import span, stretch
from diagnosis.window import Seen
from diagnosis.words import client, close_connection, lasting, some

NAME = "zombie-connection"

_HEARTBEAT_BYTES = 8
_FEW = 3
"""More connections without channels than this are a pool."""


@dataclass(frozen=True, slots=True)
class Zombie:
    """A connection without channels that consumed.

    Attributes:
        seen: its channel was seen; else it is only known to have been there when a queue lost its consumer.
        queues: those queues.
        since: wall clock, seconds since 1970.
    """

    connection: Connection
    seen: bool
    queues: tuple[Queue, ...]
    since: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every connection without channels."""
    for zombie in kept(view, _Zombies).found:
        yield _finding(view, zombie)


class _Zombies:
    def __init__(self, view: View) -> None:
        self.found = tuple(_find(view))


def _queues_left(view: View, finding: FindingReport) -> Iterable[Hashable]:
    mine = (each for each in kept(view, _Zombies).found if each.connection.name == finding.subject.name)
    return {queue.key for zombie in mine for queue in zombie.queues}


def _queue(_view: View, finding: FindingReport) -> Iterable[Hashable]:
    return ((finding.subject.vhost, finding.subject.name),)


QUEUES_WITHOUT_THEIR_CONSUMER = Relation(_queues_left, _queue)
"""The cause is a connection that lost its consumer; what follows is about the queue that it consumed from."""


def _find(view: View) -> Iterator[Zombie]:
    idle = [each for each in view.connections if each.channels == 0]
    if not idle:
        return
    lost = _lost(view)
    readings = view.window.readings("channels")
    consumed = {
        channel.connection_name: seen.at.wall
        for seen in readings
        for channel in seen.value
        if channel.consumer_count and channel.connection_name
    }
    crowd: dict[str | None, int] = {}
    for each in idle:
        crowd[each.vhost] = crowd.get(each.vhost, 0) + 1
    for connection in idle:
        bare = stretch(view.connection_history(connection.name), _without)
        if span(bare) < view.thresholds.early or not _silent(bare[0].value, connection, span(bare)):
            continue
        began = connection.connected_at
        left = [
            (at, queue)
            for at, queue in lost.get(connection.vhost or "", ())
            if began is not None and began < at <= bare[-1].at.wall
        ]
        seen = connection.name in consumed
        if not seen and (not left or crowd[connection.vhost] > _FEW):
            continue
        since = consumed[connection.name] if seen else max(at for at, _ in left)
        yield Zombie(connection, seen, tuple(queue for _, queue in left), since)


def _without(older: Seen[Connection], newer: Seen[Connection]) -> bool:
    return older.value.channels == newer.value.channels == 0


def _silent(older: Connection, newer: Connection, seconds: float) -> bool:
    """Whether nothing but heartbeats came from it."""
    if older.recv_oct is None or newer.recv_oct is None:
        return True
    often = seconds / max((newer.heartbeat or 60) / 2, 1) + 2
    return newer.recv_oct - older.recv_oct <= often * _HEARTBEAT_BYTES


def _lost(view: View) -> dict[str, list[tuple[float, Queue]]]:
    """Queues without consumers that had one lately, with the moment when it was seen last, by virtual host.

    Counters may begin anew when a channel goes, so all readings count, and not those of the present life only.
    """
    bare = {queue.key: queue for queue in view.queues if queue.consumers == 0}
    had: dict[tuple[str, str], float] = {}
    for seen in view.window.readings("queues") if bare else ():
        had.update({each.key: seen.at.wall for each in seen.value if each.consumers and each.key in bare})
    found: dict[str, list[tuple[float, Queue]]] = {}
    for key, at in had.items():
        found.setdefault(key[0], []).append((at, bare[key]))
    return found


def _finding(view: View, zombie: Zombie) -> FindingReport:
    connection = zombie.connection
    who = client(connection, connection.name)
    seconds = view.now.wall - zombie.since
    late = seconds >= view.thresholds.consumers.zombie_for and bool(zombie.queues)
    names = some(repr(queue.name) for queue in zombie.queues)
    queues = f"; {names} lost the last consumer then" if names else ""
    where = f"{connection.peer_host}:{connection.peer_port}" if connection.peer_host else "its machine"
    http, pid = close_connection(connection.name, "no channel")
    doubt = "" if zombie.seen else " A pool that opens its channels when it needs them looks the same: ask its owner."
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="connection", name=connection.name, vhost=connection.vhost, node=connection.node),
        since=None,
        summary=(
            f"{who!r} at {where} is connected and has had no channel for {lasting(seconds)}{queues}: it consumes no "
            "more, "
            "and probably does not know"
        ),
        cause=(
            "The broker closes a channel on an error (unknown delivery tag, acknowledgement timeout, missing "
            "exchange) and "
            f"keeps the connection; many clients tell the application only when it looks.{doubt}"
        ),
        evidence=(
            EvidenceReport(what="channels", value="0", expected="at least 1", source="/api/connections channels"),
            EvidenceReport(
                what="before",
                value="it had a channel with a consumer" if zombie.seen else "it was connected when the consumer went",
                source="/api/channels consumer_count" if zombie.seen else "/api/connections connected_at",
            ),
            EvidenceReport(what="received from it", value="heartbeats only", source="/api/connections recv_oct"),
        ),
        next_steps=(
            f"read the log of {who!r} on {where} for a closed channel (404, 406, 403), and restart it",
            f"or make it connect anew, by closing its connection: {http}",
            f"the same on a node: {pid}",
            "later: a listener for closed channels in the application that opens a new one and consumes again",
        ),
        runbook=runbook(NAME),
    )

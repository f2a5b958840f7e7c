"""large-messages (C13): large messages in queues or on their way, which burden memory, disk and quorum queues.

One finding per virtual host lists the queues, because large messages are a usage pattern, not an event. Messages that
are consumed at once are in no queue; then the bytes that a connection received per publish show how large they are. It
is a warning where it matters: consumers hold so many bytes that they are a good part of a node's memory.
Source: https://www.rabbitmq.com/docs/quorum-queues#disk-space
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Fact, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Connection, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.preconditions import unread
from diagnosis.rules.publishers._shared.publishers import ActivePublisher
from diagnosis.rules.publishers._shared.publishers import publishers as active_publishers
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import span, stretch
from diagnosis.window import Timestamped

NAME = "large-messages"

_MOST = 0.5
"""Share of the memory in use on a node from which on large messages are what fills it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargePublisher:
    """A client that publishes large messages.

    Attributes:
        mean_bytes: received per publish, with frames and properties.
        rate: messages per second.
        seconds: for how long it was seen.
    """

    connection: Connection
    mean_bytes: float
    rate: float
    seconds: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Collect the queues whose messages are large on average, and clients that publish such, by virtual host."""
    found: dict[str, list[Queue]] = defaultdict(list)
    for queue in view.queues:
        if (queue.messages or 0) < view.thresholds.queues.large_least or not queue.message_bytes:
            continue
        if _average(queue) >= view.limits(queue).queues.large_bytes:
            found[queue.vhost].append(queue)
    yield from unread(NAME, view, ("connections", "channels"))
    publishers = _publishers(view)
    for vhost in sorted({*found, *publishers}):
        queues, clients = found.get(vhost, []), publishers.get(vhost, [])
        spans = [span(stretch(view.history(queue), _have_messages)) for queue in queues[:20]]
        if max((*spans, *(each.seconds for each in clients))) >= view.thresholds.early:
            yield _finding(view, vhost, sorted(queues, key=lambda q: (-(q.message_bytes or 0), q.name)), clients)


def _publishers(view: View) -> dict[str, list[LargePublisher]]:
    """Return the clients that publish large messages on average, by virtual host, the largest messages first."""
    limits = view.thresholds.queues
    published: dict[str, list[ActivePublisher]] = defaultdict(list)
    for each in active_publishers(view):
        published[each.channel.connection_name or ""].append(each)
    found: dict[str, list[LargePublisher]] = defaultdict(list)
    for name, channels in sorted(published.items()):
        connection, history = view.connection(name), view.connection_history(name)
        if connection is None or connection.vhost is None or span(history) <= 0:
            continue
        rate, seconds = sum(each.rate for each in channels), min(each.seconds for each in channels)
        received = ((history[-1].value.recv_oct or 0) - (history[0].value.recv_oct or 0)) / span(history)
        enough = sum(each.published for each in channels) >= limits.large_least
        if enough and rate and received >= rate * limits.large_bytes:
            found[connection.vhost].append(
                LargePublisher(connection=connection, mean_bytes=received / rate, rate=rate, seconds=seconds)
            )
    return {vhost: sorted(each, key=lambda it: (-it.mean_bytes, it.connection.name)) for vhost, each in found.items()}


def _average(queue: Queue) -> float:
    return (queue.message_bytes or 0) / (queue.messages or 1)


def _have_messages(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return all(seen.value.messages and seen.value.message_bytes for seen in (older, newer))


def _size_facts(queue: Queue) -> dict[str, Fact]:
    return {
        "name": queue.name,
        "messages": queue.messages or 0,
        "average_bytes": _average(queue),
        "total_bytes": queue.message_bytes or 0,
    }


def _held(queues: list[Queue]) -> tuple[int, str | None]:
    """Return the unacknowledged bytes of queues with large messages on the node with most, and that node."""
    held: dict[str, int] = defaultdict(int)
    for queue in queues:
        held[queue.leader or queue.node or ""] += queue.message_bytes_unacked or 0
    node = max(sorted(held), key=lambda name: held[name], default=None)
    return (held[node], node) if node else (0, None)


def _severity(view: View, held: int, node: str | None) -> Severity:
    known = view.node(node)
    limit = known.mem_limit if known is not None else None
    much = limit is not None and held >= view.thresholds.queues.large_held * limit
    return Severity.WARNING if much else Severity.INFO


def _publisher_facts(each: LargePublisher) -> dict[str, Fact]:
    return {
        "client": client_name(each.connection),
        "mean_bytes": each.mean_bytes,
        "rate": each.rate,
        "bytes_rate": each.rate * each.mean_bytes,
    }


def _finding(view: View, vhost: str, queues: list[Queue], publishers: list[LargePublisher]) -> Finding:
    history = stretch(view.history(queues[0]), _have_messages) if queues else ()
    held, node = _held(queues)
    known = view.node(node)
    largest = max((*map(_average, queues[:1]), *(each.mean_bytes for each in publishers[:1])))
    return Finding(
        rule=NAME,
        severity=_severity(view, held, node),
        subject=Subject(kind="vhost", name=vhost),
        since=history[0].at.iso() if history else None,
        facts={
            "vhost": vhost,
            "queue_count": len(queues),
            "quorum_count": sum(queue.type == "quorum" for queue in queues),
            "total_bytes": sum(queue.message_bytes or 0 for queue in queues),
            "largest": [_size_facts(queue) for queue in queues[:3]],
            "publishers": [_publisher_facts(each) for each in publishers[:3]],
            "publisher_count": len(publishers),
            "held_bytes": held,
            "held_node": node,
            "memory_bytes": known.mem_limit if known is not None else None,
            "bytes_of_100": 100 * largest,
        },
        certainty=Certainty.CERTAIN,
        seen_seconds=max((span(history), *(each.seconds for each in publishers))),
        evidence=tuple(
            Evidence(
                key="message_size",
                value=_average(queue),
                unit=Unit.BYTES,
                source=source("/api/queues", "message_bytes", "messages"),
                facts={**_size_facts(queue), "limit_bytes": view.limits(queue).queues.large_bytes},
            )
            for queue in queues[:3]
        )
        + tuple(
            Evidence(
                key="published_size",
                value=each.mean_bytes,
                unit=Unit.BYTES,
                source=source("/api/connections", "recv_oct") + source("/api/channels", "message_stats.publish"),
                facts={**_publisher_facts(each), "limit_bytes": view.thresholds.queues.large_bytes},
            )
            for each in publishers[:3]
        ),
        involved=Involved(
            queues=queue_refs(queues),
            connections=tuple(each.connection.name for each in publishers[:MAX_NAMED]),
            clients=tuple(dict.fromkeys(name for each in publishers if (name := each.connection.client_name))),
            nodes=(node,) if node else (),
        ),
    )


def _full_nodes(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the nodes on which large messages are most of the memory in use."""
    stored: dict[str, int] = defaultdict(int)
    for ref in finding.involved.queues:
        queue = view.queue(ref.vhost, ref.name)
        if queue is not None:
            in_memory = queue.message_bytes_ram if queue.message_bytes_ram is not None else queue.message_bytes
            stored[queue.leader or queue.node or ""] += in_memory or 0
    for node in view.nodes:
        if node.mem_used and stored.get(node.name, 0) >= _MOST * node.mem_used:
            yield node.name


def _node(_view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.subject.node is None else (finding.subject.node,)


FILL_MEMORY = Relation(_full_nodes, _node)
"""The cause is large messages; the consequence is about a node whose memory in use they mostly are."""

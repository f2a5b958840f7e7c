"""stream-unbounded: a stream without retention grows, so that its disk fills up one day.

A stream keeps its messages after they are consumed, until `max-length-bytes` or `max-age` truncates it. Without either,
it only grows. The management API has no bytes of a stream: from 3.13 on it has the number of segment files, which have
a known size when they are full, and the free disk of the node shows what all of it takes.
Source: https://www.rabbitmq.com/docs/streams#retention
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity, Unit, source
from ackscope.snapshot import Node, Queue
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import client_name
from diagnosis.rules.nodes.disk_trending_full import disk_trend
from diagnosis.rules.queues._shared.queue import certainty, involved_queue, queue_subject, queue_with_policy
from diagnosis.series import delta, last, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "stream-unbounded"

_SEGMENT = 500_000_000
"""Default size of a segment, bytes. Source: https://www.rabbitmq.com/docs/streams#declaring"""
_CHUNKS = 256_000
"""A segment also ends at so many chunks. With fewer messages in each, it ended by its size."""
_MOST = 0.5
"""Share of the messages published to queues of a node from which on a stream is what fills its disk."""
_MOST_WRITTEN = 5.0
"""Bytes written to a disk for each byte received, at most; a disk that falls faster is filled by something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGrowth:
    """How a stream without retention grows.

    Attributes:
        rate: messages per second.
        run: the readings during which it grew.
        least_bytes, most_bytes: bounds of its size on each member, by its segments; None if they are not known.
        bytes_rate: bytes per second on each member: by its segments, else by the free disk of its node; None if not
            known.
        by_disk: `bytes_rate` is by the free disk.
        node: the member whose disk is full first.
        eta_seconds: until that disk reaches its limit; None if unknown.
    """

    rate: float
    run: Series[Queue]
    least_bytes: int | None
    most_bytes: int | None
    bytes_rate: float | None
    by_disk: bool
    node: Node | None
    eta_seconds: float | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every stream that has no retention and grows."""
    for queue in view.queues:
        if queue.type != "stream" or any(queue.setting(name) is not None for name in ("max-age", "max-length-bytes")):
            continue
        growth = _growth(view, queue)
        if growth is None or span(growth.run) < view.limits(queue).early:
            continue
        limits = view.limits(queue)
        soon = growth.eta_seconds is not None and growth.eta_seconds < limits.nodes.disk_eta
        if soon or growth.rate >= limits.queues.stream_rate:
            yield _finding(view, queue, growth, soon=soon)


def _grows(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (newer.value.messages or 0) >= (older.value.messages or 0)


def _growth(view: View, queue: Queue) -> StreamGrowth | None:
    run = stretch(view.history(queue), _grows)
    recent = last(run, view.limits(queue).queues.stream_for / 3)
    if len(recent) < 2 or not queue.messages or recent[-1].value.messages == recent[0].value.messages:
        return None
    # What was loaded at once before does not tell how it grows.
    rate = ((recent[-1].value.messages or 0) - (recent[0].value.messages or 0)) / span(recent)
    node = _fullest(view, queue)
    bounds = _bounds(queue)
    least, most = bounds if bounds is not None else (None, None)
    bytes_rate = rate * least / queue.messages if least else None
    fall = None
    if not bytes_rate and node is not None and _fills(view, queue, node, rate):
        trend = disk_trend(
            last(view.node_history(node.name), view.thresholds.nodes.disk_look), view.thresholds.nodes.disk_look
        )
        received = _received(view)
        is_possible = trend is not None and (received is None or trend.fall_rate <= _MOST_WRITTEN * received)
        fall = trend.fall_rate if trend is not None and is_possible else None
    rate_of_bytes = bytes_rate or fall
    room = max(0, (node.disk_free or 0) - (node.disk_free_limit or 0)) if node is not None else None
    return StreamGrowth(
        rate=rate,
        run=run,
        least_bytes=least,
        most_bytes=most,
        bytes_rate=rate_of_bytes,
        by_disk=bytes_rate is None and fall is not None,
        node=node,
        eta_seconds=room / rate_of_bytes if rate_of_bytes and room is not None else None,
    )


def _bounds(queue: Queue) -> tuple[int, int] | None:
    """Return the bounds of the size of a stream; None if its segments are not known or may end by their chunks."""
    if not queue.segments or not queue.messages:
        return None
    size = queue.setting("stream-max-segment-size-bytes")
    size = size if isinstance(size, int) and size > 0 else _SEGMENT
    full = queue.segments - 1
    least = full * size if full and queue.messages < _CHUNKS * full else 0
    return least, queue.segments * size


def _fullest(view: View, queue: Queue) -> Node | None:
    """Return the member whose disk has least room."""
    members = queue.members or tuple(name for name in (queue.leader or queue.node,) if name)
    nodes = [node for name in members if (node := view.node(name)) is not None and node.disk_free is not None]
    return min(nodes, key=lambda node: ((node.disk_free or 0) - (node.disk_free_limit or 0), node.name), default=None)


def _received(view: View) -> float | None:
    """Return the bytes per second that all connections send to the broker: it hardly writes more. None if unknown."""
    histories = [view.connection_history(each.name) for each in view.connections]
    known = [history for history in histories if len(history) > 1 and history[-1].value.recv_oct is not None]
    if not known:
        return None
    return sum(((each[-1].value.recv_oct or 0) - (each[0].value.recv_oct or 0)) / span(each) for each in known)


def _fills(view: View, queue: Queue, node: Node, rate: float) -> bool:
    """Return whether most of what is published to queues of a node is for this stream."""
    others = sum(
        delta(history, "publish") / span(history)
        for each in view.queues
        if each.key != queue.key and each.stats.publish and node.name in (each.members or (each.leader or each.node,))
        if len(history := last(view.history(each), view.thresholds.nodes.disk_look)) > 1
    )
    return rate >= _MOST * (rate + others)


def _finding(view: View, queue: Queue, growth: StreamGrowth, *, soon: bool) -> Finding:
    limit, seconds = view.limits(queue).queues.stream_for, span(growth.run)
    severity = Severity.WARNING if soon and seconds >= limit else Severity.INFO
    writers, involved = _writers(view, queue), involved_queue(queue, view.links(queue))
    free = growth.node.disk_free if growth.node is not None else None
    evidence = [
        Evidence(
            key="retention",
            value="none",
            source=source("/api/queues", "arguments", "effective_policy_definition"),
        ),
        Evidence(
            key="growth",
            value=growth.rate,
            unit=Unit.PER_SECOND,
            source=source("/api/queues", "messages"),
        ),
    ]
    if growth.most_bytes is not None:
        evidence.append(Evidence(key="size", source=source("/api/queues", "segments", "arguments")))
    if growth.eta_seconds is not None:
        evidence.append(
            Evidence(
                key="eta",
                value=growth.eta_seconds,
                unit=Unit.SECONDS,
                source=source("/api/nodes", "disk_free", "disk_free_limit") + source("/api/queues", "segments"),
            )
        )
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=growth.run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            "messages": queue.messages,
            "growth_rate": growth.rate,
            "least_bytes": growth.least_bytes,
            "most_bytes": growth.most_bytes,
            "bytes_rate": growth.bytes_rate,
            "by_disk": growth.by_disk,
            "node": growth.node.name if growth.node is not None else None,
            "free_bytes": free,
            "eta_seconds": growth.eta_seconds,
            "soon": soon,
            "members": len(queue.members or ()),
            "writers": list[Fact](writers),
            "suggested_bytes": None if free is None else max(1_000_000_000, round(free // 10, -9)),
            "warning_after_seconds": limit,
        },
        certainty=certainty(severity, seconds, limit) if soon else Certainty.CERTAIN,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=replace(involved, clients=tuple(dict.fromkeys((*writers, *involved.clients)))),
    )


def _writers(view: View, queue: Queue) -> tuple[str, ...]:
    """Return the names of the clients that publish to a stream over its own protocol; others are not known."""
    publishers = (view.streams.publishers if view.streams else None) or ()
    connections = (
        view.connection(each.connection_name) for each in publishers if (each.vhost, each.queue) == queue.key
    )
    return tuple(sorted({name for each in connections if (name := client_name(each)) is not None}))


def _nodes_it_fills(view: View, finding: Finding) -> Iterable[Hashable]:
    queue = view.queue(finding.subject.vhost, finding.subject.name)
    if queue is not None and finding.facts["soon"]:
        yield from queue.members or (queue.leader or queue.node,)


def _node(_view: View, finding: Finding) -> Iterable[Hashable]:
    return () if finding.subject.node is None else (finding.subject.node,)


FILLS_NODE = Relation(_nodes_it_fills, _node)
"""The cause is a stream that fills the disk of its members soon; the consequence is about one of these nodes."""

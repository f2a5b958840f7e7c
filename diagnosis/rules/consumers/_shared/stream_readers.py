"""Consumers that use the stream protocol: judged by their offsets, because there is nothing to acknowledge.

The plugin tells of each what it was sent since it subscribed, and how far from the end of the stream it is. The broker
sends whole chunks, and only as many as the client asks for. Two numbers show a reader that asks for no more:
what it was sent stays, and its distance from the end grows. What it does with what it got is not known.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Evidence, Fact, Finding, Inconclusive, Unit, source
from ackscope.protocols import STREAM, native_protocol
from ackscope.snapshot import Queue
from ackscope.streams import StreamConsumer
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import consumer_facts, queue_names
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.backlog_finding import backlog_finding
from diagnosis.rules.consumers._shared.sessions import BLOCKED, StuckConsumer
from diagnosis.series import rising, span, stretch
from diagnosis.window import Series, Timestamped

CONSUMERS = "/api/stream/consumers"


def readers(view: View, queue: Queue) -> tuple[ConsumerPath, ...]:
    """Return the consumers of a stream that use its protocol and may read; a standby of a group may not."""
    return tuple(link for link in view.links(queue) if link.stream is not None and link.stream.active is not False)


def flow(view: View, reader: StreamConsumer) -> Series[StreamConsumer]:
    """Return the readings of a reader since it subscribed, oldest first; empty if the broker does not tell its lag."""
    history = stretch(view.stream_history(reader), lambda older, newer: sent(newer) >= sent(older))
    return () if any(None in (seen.value.consumed, seen.value.offset_lag) for seen in history) else history


def sent(seen: Timestamped[StreamConsumer]) -> int:
    """Return how many messages a reader was sent since it subscribed."""
    return seen.value.consumed or 0


def lag(seen: Timestamped[StreamConsumer]) -> int:
    """Return how many messages a reader is from the end of its stream."""
    return seen.value.offset_lag or 0


def _stays(older: Timestamped[StreamConsumer], newer: Timestamped[StreamConsumer]) -> bool:
    return sent(older) == sent(newer) and lag(newer) >= lag(older) > 0


def standstill(history: Series[StreamConsumer]) -> Series[StreamConsumer]:
    """Return the tail in which a reader was sent nothing although it is not at the end."""
    return stretch(history, _stays)


def readers_at_standstill(view: View, queue: Queue) -> list[StuckConsumer]:
    """Return the readers of a stream that were sent nothing, while it grew, for longer than they take for a chunk."""
    found = (_at_standstill(view, queue, link) for link in readers(view, queue))
    return [each for each in found if each is not None]


def _at_standstill(view: View, queue: Queue, link: ConsumerPath) -> StuckConsumer | None:
    if link.stream is None or (link.connection is not None and link.connection.state in BLOCKED):
        return None
    limits, history = view.limits(queue).consumers, flow(view, link.stream)
    stalled = standstill(history)
    seen = span(stalled)
    if seen < limits.stuck_seen or lag(stalled[-1]) <= lag(stalled[0]):
        return None
    before = history[: len(history) - len(stalled) + 1]
    # A reader that works on a chunk for a minute is sent the next one after a minute.
    pauses = _pauses(before)
    usual = max(pauses) + view.limits(queue).interval if pauses else 0.0
    need = max(limits.stuck_for if pauses else limits.stuck_unknown, limits.stuck_patience * usual)
    need = min(need, limits.stuck_long_job)
    age = age_seconds(view, link.connection)
    # Sent nothing at all since it subscribed: it has no chunk to work on.
    held_seconds = max(seen, age) if not sent(stalled[-1]) else seen
    early = held_seconds < need
    if early and held_seconds < view.limits(queue).early:
        return None
    return StuckConsumer(
        link=link,
        prefetch=0,
        seen_seconds=seen,
        held_seconds=held_seconds,
        warning_after_seconds=need,
        since=stalled[0].at.wall,
        early=early,
        never_settled=not sent(stalled[-1]),
    )


def _pauses(history: Series[StreamConsumer]) -> list[float]:
    """Return for how long at least a reader was sent nothing before each time that it was sent messages."""
    found, since = [], history[0] if history else None
    for older, newer in pairwise(history):
        if since is not None and sent(newer) > sent(older):
            found.append(older.at.since(since.at))
            since = newer
    return found


def reader_evidence(link: ConsumerPath) -> Evidence:
    """How far one reader is from the end of its stream; the entry `reader` of a page."""
    reader = link.stream
    return Evidence(
        key="reader",
        value=reader.offset_lag if reader else None,
        unit=Unit.MESSAGES,
        source=source(CONSUMERS, "offset_lag", "consumed", "credits", "offset"),
        facts={
            "held_by": consumer_facts(link),
            "credit": reader.credit if reader else None,
            "consumed": reader.consumed if reader else None,
            "offset": reader.offset if reader else None,
        },
    )


def readers_not_listed(view: View, rule: str) -> Iterator[Inconclusive]:
    """Yield the streams with readers whose offset the broker does not report."""
    streams = queue_names(
        queue
        for queue in view.queues
        if queue.type == "stream" and any(_is_unlisted(view, link) for link in view.links(queue))
    )
    if streams:
        facts: dict[str, Fact] = {
            "streams": len(streams),
            "names": streams,
            "error": view.error("streams"),
            "plugin": any("rabbitmq_stream_management" in (node.plugins or ()) for node in view.nodes),
        }
        yield Inconclusive(rule=rule, reason="readers_not_listed", facts=facts)


def _is_unlisted(view: View, link: ConsumerPath) -> bool:
    """Return whether a reader uses the stream protocol and is not in the list of the plugin, unless it is just new."""
    if link.connection is None or native_protocol(link.connection.protocol) != STREAM:
        return False
    known = link.stream is not None and link.stream.offset_lag is not None
    return not known and (view.streams is None or age_seconds(view, link.connection) > 2 * view.thresholds.interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaggingReader:
    """A reader of a stream that is sent messages, but fewer than are published.

    Attributes:
        growing: the readings during which its distance from the end grew.
        read_rate, publish_rate: messages per second meanwhile.
    """

    queue: Queue
    link: ConsumerPath
    growing: Series[StreamConsumer]
    read_rate: float
    publish_rate: float

    @property
    def lag(self) -> int:
        """Messages from its offset to the end of the stream."""
        return lag(self.growing[-1])

    @property
    def backlog_seconds(self) -> float:
        """Seconds that it takes at its pace to read what is there now."""
        return self.lag / self.read_rate


def worst_readers(view: View) -> Iterator[LaggingReader]:
    """Yield of each stream the reader that falls behind although it reads, and takes longest to catch up.

    Streams with a reader that stands still are left out: that is the fault to act on first.
    """
    for queue in view.queues:
        if queue.type != "stream" or readers_at_standstill(view, queue):
            continue
        judged = (_lagging(view, queue, link) for link in readers(view, queue))
        found = [each for each in judged if each is not None]
        if found:
            yield max(found, key=lambda each: each.backlog_seconds)


def _lagging(view: View, queue: Queue, link: ConsumerPath) -> LaggingReader | None:
    history = flow(view, link.stream) if link.stream is not None else ()
    growing = rising(history, view.limits(queue).interval, lambda reader: reader.offset_lag)
    seconds = span(growing)
    if seconds < view.limits(queue).early:
        return None
    read = sent(growing[-1]) - sent(growing[0])
    gained = lag(growing[-1]) - lag(growing[0])
    # Growth within a tenth of what it reads is noise: the broker sends whole chunks.
    if not read or gained < read / 10:
        return None
    return LaggingReader(
        queue=queue, link=link, growing=growing, read_rate=read / seconds, publish_rate=(read + gained) / seconds
    )


def lagging_finding(view: View, rule: str, found: LaggingReader) -> Finding:
    """The finding about a reader that falls behind, with the facts of the page of `slow-consumer`."""
    return backlog_finding(
        view,
        rule,
        found.queue,
        found.link,
        found.growing,
        facts={
            "publish_rate": found.publish_rate,
            "ack_rate": found.read_rate,
            "seconds_per_message": 1 / found.read_rate,
            "backlog_seconds": found.backlog_seconds,
            "round_trip_needed": False,
            "lag": found.lag,
        },
        evidence=(
            reader_evidence(found.link),
            Evidence(
                key="published",
                value=found.publish_rate,
                unit=Unit.PER_SECOND,
                source=source(CONSUMERS, "offset_lag", "consumed"),
            ),
            Evidence(key="read", value=found.read_rate, unit=Unit.PER_SECOND, source=source(CONSUMERS, "consumed")),
        ),
        urgent=found.backlog_seconds >= view.limits(found.queue).consumers.slow_wait,
    )

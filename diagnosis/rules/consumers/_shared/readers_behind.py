"""AMQP 0-9-1 readers of streams: judged by counters, because the broker tells no offset of them.

Each reader of a stream gets all its messages. So where all readers together are sent less than is published, every one
of them falls behind, however many there are. A reader that catches up is sent more than is published, and one at the
end as much. The broker's own samples have these counters, so one look can tell it of the last minutes.
Source: https://www.rabbitmq.com/docs/streams#consuming; seen on 3.10.8 and 4.3.6
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Evidence, Finding, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import prefetch
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.backlog_finding import backlog_finding
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers
from diagnosis.series import count, delta, last, readings_since, rising, span
from diagnosis.window import Series

_SENT = ("deliver", "deliver_no_ack")
_STEP = 30.0
"""Seconds within which a reader is sent something, where so much was seen: some handle a batch first."""
_NOISE = 0.1
"""Share of what readers are sent; to fall behind by less is chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersBehind:
    """A stream whose AMQP 0-9-1 readers are together sent less than is published.

    Attributes:
        links: these readers.
        growing: the readings during which they fell behind.
        behind: messages by which each of them fell behind meanwhile, at least.
        read_rate, publish_rate: messages per second meanwhile; `read_rate` is that of all readers together.
    """

    queue: Queue
    links: tuple[ConsumerPath, ...]
    growing: Series[Queue]
    behind: int
    read_rate: float
    publish_rate: float

    @property
    def backlog_seconds(self) -> float:
        """Seconds of work, at least: what retention has deleted is none any more."""
        return min(self.behind, self.queue.messages or 0) / self.read_rate


def falling_behind(view: View) -> Iterator[ReadersBehind]:
    """Yield the streams whose AMQP 0-9-1 readers all fall behind although they are sent messages."""
    for queue in view.queues:
        if queue.type == "stream" and queue.stats.publish:
            found = _behind(view, queue)
            if found is not None:
                yield found


def _behind(view: View, queue: Queue) -> ReadersBehind | None:
    # A reader with a filter is not sent what does not match.
    links = tuple(
        link
        for link in view.links(queue)
        if link.channel is not None and link.consumer.subscription is None and not link.consumer.filtered
    )
    if not links:
        return None
    limits = view.limits(queue)
    there = view.now.mono - min(age_seconds(view, link.connection) for link in links)
    history = readings_since(view.history(queue), there)
    step = _STEP if span(history) >= 2 * _STEP else limits.interval
    # While nothing is sent, there may be no reader, or one that hangs.
    growing = min(rising(history, step, _unread), rising(history, step, _sent), key=span)
    seconds = span(growing)
    if seconds < limits.early:
        return None
    published, read = delta(growing, "publish"), delta(growing, *_SENT)
    late = limits.queues.loss_skew * published / seconds
    if published - read < max(_NOISE * read, late) or _keeps_up(last(growing, limits.interval)):
        return None
    return ReadersBehind(
        queue=queue,
        links=links,
        growing=growing,
        behind=published - read,
        read_rate=read / seconds,
        publish_rate=published / seconds,
    )


def _keeps_up(readings: Series[Queue]) -> bool:
    return delta(readings, "publish") <= (1 + _NOISE) * delta(readings, *_SENT)


def _sent(queue: Queue) -> int:
    return count(queue.stats, *_SENT)


def _unread(queue: Queue) -> int:
    return count(queue.stats, "publish") - _sent(queue)


def falling_behind_finding(view: View, rule: str, found: ReadersBehind) -> Finding:
    """The finding about readers that fall behind, with the facts of the page of `slow-consumer`."""
    made = backlog_finding(
        view,
        rule,
        found.queue,
        found.links[0],
        found.growing,
        facts={
            "clients": client_names(found.links),
            "consumers": len(found.links),
            "prefetch": max(prefetch(view, link) or 0 for link in found.links),
            "publish_rate": found.publish_rate,
            "ack_rate": found.read_rate,
            "seconds_per_message": len(found.links) / found.read_rate,
            "backlog_seconds": found.backlog_seconds,
            "round_trip_needed": False,
            "behind": found.behind,
        },
        evidence=(
            Evidence(
                key="published",
                value=found.publish_rate,
                unit=Unit.PER_SECOND,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="read",
                value=found.read_rate,
                unit=Unit.PER_SECOND,
                source=source("/api/queues", "message_stats.deliver"),
            ),
        ),
        urgent=found.backlog_seconds >= view.limits(found.queue).consumers.slow_wait,
    )
    return replace(made, involved=involved_consumers((found.queue,), found.links))

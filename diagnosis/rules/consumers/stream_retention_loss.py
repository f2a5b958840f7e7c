"""stream-retention-loss: retention deleted messages of a stream before one of its readers got them.

A reader is sent what follows its offset. If that is deleted, it goes on with the oldest message that is left: its
offset then rises by more than the number of messages that it was sent. Both are known for readers that use the stream
protocol. Such a jump lands at the begin of the stream, so jumps of readers elsewhere do not count. Chunks of the
broker's own take an offset each, which is why few missing ones prove nothing.

The broker tells no offset of an AMQP 0-9-1 reader. There a balance proves it: what was published while it read, it was
sent, is still stored, or is gone. So what was published, less what it was sent and all that is stored, it has missed.
The broker's own samples of the last minutes have the counters, but not how many readers there were: they count as those
of the one reader while something was sent at each of them, and no more than its channel was sent.
Source: https://www.rabbitmq.com/docs/streams#retention; seen on 4.0.5 and 4.3.6
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from ackscope.streams import StreamConsumer
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.rules.consumers._shared.stream_readers import (
    CONSUMERS,
    flow,
    lag,
    reader_evidence,
    readers,
    readers_not_listed,
    sent,
)
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "stream-retention-loss"

_LEAST = 100
_SHARE = 0.2
"""Minimum share of the offsets passed that were not sent."""
_NEAR = 0.5
"""Minimum distance from the end, as a share of the stream, of a reader that is near its begin."""
_RECENT = 60.0
_COUNTERS = source("/api/queues", "message_stats.publish", "message_stats.deliver", "messages")


@dataclass(frozen=True, slots=True)
class _Miss:
    """A reader that missed messages within the window, and when it missed the last of them.

    Attributes:
        published, delivered: while an AMQP 0-9-1 reader was there; None for the stream protocol.
    """

    link: ConsumerPath
    missed: int
    first: Instant
    last: Instant
    published: int | None = None
    delivered: int | None = None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge the readers of every stream that has retention."""
    yield from readers_not_listed(view, NAME)
    for queue in view.queues:
        if queue.type != "stream" or all(queue.setting(name) is None for name in ("max-age", "max-length-bytes")):
            continue
        found = [miss for link in readers(view, queue) if (miss := _missed(view, queue, link)) is not None]
        found += [miss for link in view.links(queue) if (miss := _overtaken(view, queue, link)) is not None]
        if found:
            yield _finding(view, queue, found)


def _missed(view: View, queue: Queue, link: ConsumerPath) -> _Miss | None:
    # A reader with a filter is not sent what does not match.
    if link.stream is None or link.stream.filtered or not queue.messages:
        return None
    jumps = [
        (older.at, newer.at, jump)
        for older, newer in pairwise(flow(view, link.stream))
        if (jump := _jump(older, newer, queue.messages))
    ]
    if not jumps:
        return None
    return _Miss(link, sum(jump for _, _, jump in jumps), jumps[0][0], jumps[-1][1])


def _jump(older: Timestamped[StreamConsumer], newer: Timestamped[StreamConsumer], messages: int) -> int:
    """Return how many offsets a reader passed without being sent their messages; 0 if that is not proven."""
    before, after = older.value.offset, newer.value.offset
    # Its first message may be anywhere.
    if before is None or after is None or not sent(older) or min(lag(older), lag(newer)) < _NEAR * messages:
        return 0
    jump = after - before - (sent(newer) - sent(older))
    return jump if jump >= max(_LEAST, _SHARE * (after - before)) else 0


def _overtaken(view: View, queue: Queue, link: ConsumerPath) -> _Miss | None:
    """Return what an AMQP 0-9-1 reader has missed at least; None if that is not proven.

    The counters of a stream are those of all its readers, so with several the channel of each has to tell. Of one that
    began with the first message it tells all that it was sent since its connection was opened; else only what it was
    sent between readings of the channel.
    """
    if link.channel is None or link.consumer.filtered or queue.messages is None:
        return None
    if view.queues_served(link.channel.name) != 1:
        return None
    history, reads = view.history(queue), view.channel_history(link.channel.name)
    alone = queue.consumers == 1 and link.connection is not None
    from_first = link.consumer.stream_offset == "first" and link.connection is not None
    connected = view.now.mono - age_seconds(view, link.connection) if link.connection else view.now.mono
    begin = connected if alone or from_first else reads[0].at.mono
    stored = tuple(seen for seen in history if seen.at.mono >= begin)
    if alone:
        # A reader may subscribe long after it connected: it was there once it was sent something.
        start = next((place for place, pair in enumerate(pairwise(stored)) if delta(pair, "deliver")), len(stored))
        stored = stretch(stored[start + 1 :], _may_be_alone)
        if not _is_all_its_own(stored, link.channel, view.limits(queue).queues.loss_skew):
            stored = stretch(stored, lambda older, _newer: older.value.consumers == 1)
    if len(stored) < 2 or not span(stored):
        return None
    published = delta(stored, "publish")
    delivered = delta(reads, "deliver")
    if alone:
        delivered = delta(stored, "deliver")
    elif from_first:
        delivered = count(link.channel.stats, "deliver", "deliver_no_ack")
    unsure = view.limits(queue).queues.loss_skew * (published + delivered) / span(stored)
    most = max(seen.value.messages or 0 for seen in stored)
    missed = int(published - delivered - most - unsure)
    if missed < max(_LEAST, _SHARE * published):
        return None
    return _Miss(link, missed, stored[0].at, stored[-1].at, published, delivered)


def _may_be_alone(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether the only reader of now was the only one already; perhaps, where the number is not known."""
    return older.value.consumers == 1 or (older.value.consumers is None and delta((older, newer), "deliver") > 0)


def _is_all_its_own(stored: Series[Queue], channel: Channel, skew: float) -> bool:
    """Return whether a channel was sent all that a stream delivered, but for counters that differ in age."""
    delivered = delta(stored, "deliver")
    late = skew * delivered / span(stored) if span(stored) else 0.0
    return count(channel.stats, "deliver", "deliver_no_ack") >= delivered - late


def _finding(view: View, queue: Queue, found: list[_Miss]) -> Finding:
    worst = max(found, key=lambda miss: miss.missed)
    last = max(miss.last.mono for miss in found)
    links = tuple(miss.link for miss in found)
    return Finding(
        rule=NAME,
        severity=Severity.CRITICAL if view.now.mono - last <= _RECENT else Severity.WARNING,
        subject=queue_subject(queue),
        since=min((miss.first for miss in found), key=lambda at: at.mono).iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": client_names(links),
            "missed": worst.missed,
            "lag": worst.link.stream.offset_lag if worst.link.stream else None,
            "messages": queue.messages,
            "max_age": queue.setting("max-age"),
            "max_bytes": queue.setting("max-length-bytes"),
            "recently": view.now.mono - last <= _RECENT,
            "ago_seconds": view.now.mono - last,
            "balanced": worst.published is not None,
            "published": worst.published,
            "delivered": worst.delivered,
        },
        evidence=(
            *(
                Evidence(
                    key="missed",
                    value=miss.missed,
                    unit=Unit.MESSAGES,
                    source=source(CONSUMERS, "offset", "consumed") if miss.published is None else _COUNTERS,
                    facts={"held_by": consumer_facts(miss.link)},
                )
                for miss in found[:5]
            ),
            *([reader_evidence(worst.link)] if worst.link.stream is not None else []),
            Evidence(key="retention", source=source("/api/queues", "arguments", "effective_policy_definition")),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.LIKELY,
    )

"""stream-reader-unserved: the broker sends a reader of a stream nothing, although it may send and more is published.

A reader over AMQP 0-9-1 that holds fewer messages than its prefetch has credit. Then the broker sends it what is in the
stream from its offset on. If it sends nothing, it finds nothing for that reader: its filter matches no message, or its
offset is later than all of them. A message without a filter value matches no filter, unless the reader asks for those
as well.

A filter that few messages match looks the same, and one whose publishers pause. It is a warning only for a reader
that was sent messages steadily, and if as many are published as before.
Source: https://www.rabbitmq.com/docs/streams#filtering
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "stream-reader-unserved"

_SENT = ("deliver", "deliver_no_ack")
_WARNING_AFTER = 30.0
_EXPECTED = 10
"""Messages that a reader should have been sent at its usual share: by chance it is not sent none of so many."""
_AS_BEFORE = 0.8
"""Least share of the former publish rate: if it falls further, a publisher of its messages may pause."""


@dataclass(frozen=True, slots=True)
class _Unserved:
    """A reader that may be sent messages, and is sent none.

    Attributes:
        seconds: for how long.
        published: messages published to the stream meanwhile.
        delivered: messages that it was sent before, since its channel was opened.
        steady: whether it should have been sent many of these, and nobody publishes less than before.
    """

    link: ConsumerPath
    channel: Channel
    since: Timestamped[Queue]
    seconds: float
    published: int
    delivered: int
    steady: bool


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every reader of a stream to which messages are published."""
    for queue in view.queues:
        if queue.type != "stream" or not queue.consumers or not view.moved(queue, "publish"):
            continue
        found = [each for link in view.links(queue) if (each := _unserved(view, queue, link)) is not None]
        if found:
            yield _finding(queue, max(found, key=lambda each: (each.steady, each.seconds)), found)


def _unserved(view: View, queue: Queue, link: ConsumerPath) -> _Unserved | None:
    channel, connection = link.channel, link.connection
    if channel is None or connection is None or connection.send_pend or view.queues_served(channel.name) != 1:
        return None
    reads = stretch(
        view.channel_history(channel.name), lambda one, two: _has_credit(link, one) and _is_silent(one, two)
    )
    history = view.history(queue)
    silent = tuple(seen for seen in history if reads and seen.at.mono >= reads[0].at.mono - view.limits(queue).interval)
    if queue.consumers == 1:
        # Queues are remembered for longer than channels, and these counters are its own.
        whole = stretch(history, lambda one, two: one.value.consumers == 1 and _is_silent(one, two))
        silent = whole if len(reads) > 1 else ()
    seconds = min(span(silent), age_seconds(view, connection))
    published = delta(silent, "publish")
    if len(reads) < 2 or seconds < view.limits(queue).early or published < view.limits(queue).queues.loss_least:
        return None
    if not _has_credit(link, reads[-1]):
        return None
    delivered = count(channel.stats, *_SENT)
    # A filter that few messages match, or a reader that has just come.
    if not delivered and seconds < _WARNING_AFTER:
        return None
    before = history[: len(history) - len(silent) + 1] if queue.consumers == 1 else ()
    return _Unserved(link, channel, silent[0], seconds, published, delivered, _is_steady(before, silent))


def _has_credit(link: ConsumerPath, seen: Timestamped[Channel]) -> bool:
    return held(seen.value) < (link.consumer.prefetch_count or 0)


def _is_silent(
    older: Timestamped[Queue] | Timestamped[Channel], newer: Timestamped[Queue] | Timestamped[Channel]
) -> bool:
    return count(newer.value.stats, *_SENT) == count(older.value.stats, *_SENT)


def _is_steady(before: Series[Queue], silent: Series[Queue]) -> bool:
    """Return whether a reader was sent a share of all messages by which it would have been sent many since."""
    published, seconds = delta(before, "publish"), span(before)
    if not published or not seconds or not span(silent):
        return False
    now = delta(silent, "publish")
    expected = delta(before, *_SENT) / published * now
    return expected >= _EXPECTED and now / span(silent) >= _AS_BEFORE * published / seconds


def _finding(queue: Queue, worst: _Unserved, found: list[_Unserved]) -> Finding:
    link, links = worst.link, tuple(each.link for each in found)
    certain = worst.steady and bool(link.consumer.filtered) and worst.seconds >= _WARNING_AFTER
    prefetch, unacked = link.consumer.prefetch_count, held(worst.channel)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if certain else Severity.INFO,
        subject=queue_subject(queue),
        since=worst.since.at.iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": client_names(links),
            "reader": process_facts(link),
            "readers": queue.consumers,
            "unserved": len(found),
            "began": worst.since.at.iso(),
            "seconds": worst.seconds,
            "published": worst.published,
            "delivered": worst.delivered,
            "steady": worst.steady,
            "filtered": bool(link.consumer.filtered),
            "offset": link.consumer.stream_offset,
            "warning_after_seconds": _WARNING_AFTER,
        },
        evidence=(
            Evidence(
                key="delivered",
                value=0,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.deliver"),
            ),
            Evidence(
                key="published",
                value=worst.published,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
            ),
            Evidence(
                key="unacked",
                value=unacked,
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged") + source("/api/consumers", "prefetch_count"),
                facts={"prefetch": prefetch},
            ),
            Evidence(
                key="arguments",
                source=source("/api/consumers", "arguments.x-stream-filter", "arguments.x-stream-offset"),
            ),
        ),
        involved=involved_consumers((queue,), links),
        certainty=Certainty.EARLY if worst.seconds < _WARNING_AFTER else Certainty.LIKELY,
        seen_seconds=worst.seconds,
    )

"""held-after-cancel: a channel holds messages of consumers that were cancelled.

When a client cancels a consumer, what was delivered to it stays unacknowledged on the channel until the client settles
it or the channel ends. A client that consumes again on the same channel gets its whole prefetch once more, so the
channel holds more than its prefetch. Source: https://www.rabbitmq.com/docs/consumers#unsubscribing; seen on 3.10, 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.rules.consumers._shared.holders import consumers_of, is_stale, queues_of, unaccounted
from diagnosis.rules.consumers._shared.objects import connection_peer, queue_subject
from diagnosis.rules.consumers._shared.standstill import exceeds, held, idle_since, left_without_consumer
from diagnosis.series import delta, span
from diagnosis.window import Series

NAME = "held-after-cancel"

_NEAR = 3
"""Messages by which a queue and a channel may differ at least, because they are refreshed at different moments."""


@dataclass(frozen=True, slots=True)
class _Left:
    """What a channel holds of cancelled consumers.

    Attributes:
        allowed: what its present consumers may hold; 0 if it has none.
        series: the readings in which it was seen.
        seconds: for how long, at least.
        need: seconds from which on it is a warning.
    """

    channel: Channel
    allowed: int
    series: Series[Channel]
    seconds: float
    need: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every channel that holds messages."""
    for channel in view.channels:
        if not channel.messages_unacked or not channel.stats.deliver or channel.stats.get or channel.acks_uncommitted:
            continue
        left = _exceeding(view, channel) or _without_consumer(view, channel)
        if left is None or left.seconds < view.thresholds.early:
            continue
        queues = () if is_stale(view, channel) else _queues_of(view, channel, held(channel) - left.allowed)
        if queues:
            yield _finding(view, left, queues)


def _exceeding(view: View, channel: Channel) -> _Left | None:
    """Return what a channel holds beyond one prefetch of each of its consumers; None if a consumer has no limit."""
    prefetches = [[each.prefetch_count or 0 for each in consumers] for consumers in consumers_of(view, channel)]
    if any(0 in each for each in prefetches) or not channel.prefetch_count:
        return None
    most = max((sum(each) for each in prefetches), default=0)

    def _allowed(reading: Channel) -> int:
        usual = max(1, reading.consumer_count or 0) * (reading.prefetch_count or 0)
        return max(usual, most, reading.global_prefetch_count or 0)

    series = exceeds(view.channel_history(channel.name), _allowed)
    if not series:
        return None
    return _Left(channel, _allowed(channel), series, span(series), view.thresholds.early)


def _without_consumer(view: View, channel: Channel) -> _Left | None:
    series = left_without_consumer(view.channel_history(channel.name))
    if not series:
        return None
    limits, readings = view.thresholds.consumers, view.window.readings("channels")
    since = idle_since(series)
    idle = 0.0 if since is None else max(0.0, readings[-1].at.wall - since)
    # A client that ends after the job that it works on looks the same.
    need = limits.stuck_long_job if held(channel) == 1 else limits.cancelled_for
    return _Left(channel, 0, series, max(span(series), idle), need)


def _queues_of(view: View, channel: Channel, excess: int) -> tuple[Queue, ...]:
    """Return the queue whose messages a channel holds; several if each of them may be it.

    None if no queue counts as many messages: then the number of the channel is stale. The list of consumers shows new
    consumers late, so a short one may be in no reading. Then the numbers decide.
    """
    known = queues_of(view, channel)
    others = tuple(each for each in view.queues if each.vhost == channel.vhost and each.type != "stream" and held(each))
    counts = {each.key: unaccounted(view, each, but=channel.name) for each in known or others}
    fitting = [each for each in known or others if counts[each.key] >= 0.5 * excess]
    if known:
        return tuple(sorted(fitting, key=lambda each: (-counts[each.key], each.name))[:1])
    near = max(_NEAR, channel.prefetch_count or 0, 0.25 * held(channel))
    return tuple(each for each in fitting if abs(counts[each.key] - held(channel)) <= near) or tuple(fitting)


def _finding(view: View, left: _Left, queues: tuple[Queue, ...]) -> Finding:
    queue = queues[0] if len(queues) == 1 else None
    channel, history = left.channel, view.channel_history(left.channel.name)
    connection = view.connection(channel.connection_name)
    late = left.seconds >= left.need
    name = channel.connection_name or channel.name
    subject = Subject(kind="connection", name=name, vhost=channel.vhost, node=channel.node)
    client = client_name(connection, channel.connection_name)
    ends = held(left.series[-1].value) - held(left.series[0].value)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue) if queue is not None else subject,
        since=left.series[0].at.iso(),
        facts={
            "queues": [each.name for each in queues],
            "client": client,
            "peer": connection_peer(connection),
            "channel": channel.name,
            "connection": channel.connection_name,
            "connection_channels": connection.channels if connection else None,
            "unacked": held(channel),
            "allowed": left.allowed,
            "prefetch": channel.prefetch_count,
            "consumers": channel.consumer_count,
            "grown": max(0, ends),
            "acked": delta(history, "ack"),
            "acked_seconds": span(history),
            "ready": None if queue is None else queue.messages_ready,
            "held_seconds": left.seconds,
            "warning_after_seconds": left.need,
        },
        evidence=(
            Evidence(
                key="unacked",
                value=held(channel),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
            Evidence(
                key="consumers",
                value=channel.consumer_count,
                source=source("/api/channels", "consumer_count", "prefetch_count") + source("/api/consumers"),
            ),
            Evidence(
                key="acked",
                value=delta(history, "ack"),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.ack"),
            ),
            *(
                ()
                if queue is None
                else (
                    Evidence(
                        key="queue_unacked",
                        value=held(queue),
                        unit=Unit.MESSAGES,
                        source=source("/api/queues", "messages_unacknowledged"),
                    ),
                )
            ),
        ),
        involved=Involved(
            queues=tuple(map(queue_ref, queues)),
            channels=(channel.name,),
            connections=(channel.connection_name,) if channel.connection_name else (),
            clients=(connection.client_name,) if connection and connection.client_name else (),
        ),
        certainty=Certainty.EARLY if not late else Certainty.CERTAIN if left.allowed else Certainty.LIKELY,
        seen_seconds=span(left.series),
    )

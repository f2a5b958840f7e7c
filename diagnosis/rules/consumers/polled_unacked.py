"""polled-unacked: a client takes messages with basic.get, keeps its channel open, and settles none of them.

No prefetch limits polling, so what such a client holds can grow without end. A quorum queue counts each of these
messages as a consumer, so the number of its consumers says nothing. The API does not say from which queue a channel
polled: a queue fits if it was polled, and if the channels of its consumers do not hold all that is unacknowledged.
A channel that holds all that it ever polled has held the first of it for as long as its pace tells, whatever the queue.
Source: https://www.rabbitmq.com/docs/consumers#polling; seen on 4.3.6.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import client_name, queue_ref
from diagnosis.memo import per_view
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.holders import unaccounted
from diagnosis.rules.consumers._shared.objects import connection_peer, queue_subject
from diagnosis.rules.consumers._shared.standstill import (
    handling_time,
    held,
    idle_since,
    left_without_consumer,
    longer_than_jobs,
    unsettled,
)
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series

NAME = "polled-unacked"

_ALL, _SURE = 0.9, 0.75
"""Share of what it ever polled that a channel must hold, so that it settled none: both are counted at different times.
Share of a duration that its pace implies to rely on.
"""
_NO_COUNTS = ("ack", "deliver", "deliver_no_ack", "get_no_ack")
"""Counters of a channel that has only polled, and settled nothing."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What a polling channel holds: readings in which it settled nothing, how long, and from when it is a warning."""

    channel: Channel
    series: Series[Channel]
    seconds: float
    need: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every channel that polls, does not consume, and holds messages."""
    for channel in view.channels:
        if not channel.stats.get or not channel.messages_unacked or channel.acks_uncommitted:
            continue
        queues = _queues_of(view, channel)
        found = _held(view, channel, queues)
        if found is not None and found.seconds >= view.thresholds.early:
            yield _finding(view, found, queues)


def _held(view: View, channel: Channel, queues: tuple[Queue, ...]) -> _Held | None:
    history = view.channel_history(channel.name)
    series = left_without_consumer(history)
    if not series:
        return None
    limits, readings = view.thresholds.consumers, view.window.readings("channels")
    since = idle_since(series)
    idle = 0.0 if since is None else max(0.0, readings[-1].at.wall - since)
    own = view.history(queues[0]) if len(queues) == 1 and not view.links(queues[0]) else ()
    # Queues are remembered for longer than channels.
    waiting = unsettled(own)
    usual = max(handling_time(history, series), handling_time(own, waiting))
    # A client that works on one message, or that collects batches, looks the same for as long as one of them takes.
    need = limits.stuck_long_job if held(channel) == 1 or (channel.stats.ack and not usual) else limits.cancelled_for
    need = longer_than_jobs(need, usual, limits)
    return _Held(channel, series, max(span(series), idle, span(waiting), _by_pace(view, channel, series)), need)


def _by_pace(view: View, channel: Channel, series: Series[Channel]) -> float:
    """Return for how many seconds at least a channel has held its first message, at its pace; 0 if it settled any."""
    polled, recent = count(channel.stats, "get"), delta(series, "get")
    connection = view.connection(channel.connection_name)
    if connection is None or not recent or count(channel.stats, *_NO_COUNTS) or held(channel) < _ALL * polled:
        return 0.0
    # Its pace may be higher than the few messages of one interval show.
    quickest = (recent + 2 * sqrt(recent)) / span(series)
    return min(_SURE * polled / quickest, age_seconds(view, connection))


def _queues_of(view: View, channel: Channel) -> tuple[Queue, ...]:
    """Return the polled queue whose messages a channel holds; several if each of them may be it."""
    polled = per_view(view, _polled).get(channel.vhost, ())
    counts = {each.key: unaccounted(view, each, but=channel.name) for each in polled}
    fitting = [each for each in polled if counts[each.key] >= 0.5 * held(channel)]
    return tuple(sorted(fitting, key=lambda each: (abs(counts[each.key] - held(channel)), each.name)))


def _polled(view: View) -> dict[str | None, list[Queue]]:
    """Return the queues by virtual host that were polled and have unacknowledged messages."""
    found: dict[str | None, list[Queue]] = defaultdict(list)
    for queue in view.queues:
        if queue.stats.get and held(queue) and queue.type != "stream":
            found[queue.vhost].append(queue)
    return found


def _finding(view: View, found: _Held, queues: tuple[Queue, ...]) -> Finding:
    channel, series = found.channel, found.series
    queue = queues[0] if len(queues) == 1 else None
    connection = view.connection(channel.connection_name)
    late = found.seconds >= found.need
    recent = last(series, view.thresholds.early)
    name = channel.connection_name or channel.name
    subject = Subject(kind="connection", name=name, vhost=channel.vhost, node=channel.node)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue) if queue is not None else subject,
        since=series[0].at.iso(),
        facts={
            "queues": [each.name for each in queues],
            "client": client_name(connection, channel.connection_name),
            "peer": connection_peer(connection),
            "channel": channel.name,
            "connection": channel.connection_name,
            "connection_channels": connection.channels if connection else None,
            "unacked": held(channel),
            "grows": delta(recent, "get") > 0,
            "polled": delta(series, "get"),
            "acked": count(channel.stats, "ack"),
            "ready": None if queue is None else queue.messages_ready,
            "held_seconds": found.seconds,
            "warning_after_seconds": found.need,
        },
        evidence=(
            Evidence(
                key="unacked",
                value=held(channel),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
            Evidence(
                key="polled",
                value=count(channel.stats, "get"),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.get"),
            ),
            Evidence(
                key="acked",
                value=count(channel.stats, "ack"),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.ack"),
            ),
            *(
                Evidence(
                    key="queue_unacked",
                    value=held(each),
                    unit=Unit.MESSAGES,
                    source=source("/api/queues", "messages_unacknowledged"),
                    facts={"name": each.name},
                )
                for each in queues[:3]
            ),
        ),
        involved=Involved(
            queues=tuple(map(queue_ref, queues)),
            channels=(channel.name,),
            connections=(channel.connection_name,) if channel.connection_name else (),
            clients=(connection.client_name,) if connection and connection.client_name else (),
        ),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=span(series),
    )

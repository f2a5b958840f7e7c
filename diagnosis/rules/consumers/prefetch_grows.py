"""prefetch-grows: a client raises its prefetch with each message that it holds.

A client that holds messages on purpose until their time, such as Celery with ETA and countdown tasks, raises the
prefetch that its channel shares by one for each of them, so that the others still arrive. Both numbers then rise
together. Read from `global_prefetch_count`, which brokers do not report from 4.0 on; quorum queues do not accept such a
prefetch, so there the client stops at its limit (stuck-consumer). Seen on 3.10.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.objects import involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.standstill import held, never_falls
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series

NAME = "prefetch-grows"


@dataclass(frozen=True, slots=True)
class _Raised:
    """A shared prefetch that rose with the messages that its channel holds."""

    channel: Channel
    series: Series[Channel]
    raised: int
    gained: int


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every channel with a shared prefetch."""
    for channel in view.channels:
        raised = _raised(view, channel) if channel.global_prefetch_count else None
        if raised is None:
            continue
        links = [(queue, link) for queue in view.queues for link in view.links(queue) if link.channel is channel]
        queue, link = max(links, key=lambda each: (held(each[0]), each[0].name), default=(None, None))
        if queue is not None and link is not None:
            grows = never_falls(view.history(queue), held)
            if span(grows) >= view.limits(queue).early:
                yield _finding(view, queue, link, raised, grows)


def _raised(view: View, channel: Channel) -> _Raised | None:
    """Return how far the prefetch rose while as many more messages were held; None if they do not rise together."""
    series = stretch(
        view.channel_history(channel.name),
        lambda older, newer: (older.value.global_prefetch_count or 0) <= (newer.value.global_prefetch_count or 0),
    )
    first, middle, last = series[0].value, series[(len(series) - 1) // 2].value, series[-1].value
    if not first.global_prefetch_count or middle.global_prefetch_count == last.global_prefetch_count:
        # It was set once, or is not raised any more.
        return None
    raised = (last.global_prefetch_count or 0) - (first.global_prefetch_count or 0)
    gained = held(last) - held(first)
    together = raised > 0 and gained > 0 and abs(raised - gained) <= max(3, 0.5 * max(raised, gained))
    # The first limit remains for messages that are not held: the rest of the prefetch is what it was raised by.
    filled = 2 * held(last) >= (last.global_prefetch_count or 0)
    return _Raised(last, series, raised, gained) if together and filled else None


def _finding(view: View, queue: Queue, link: ConsumerPath, raised: _Raised, grows: Series[Queue]) -> Finding:
    seconds, limits = span(grows), view.limits(queue).consumers
    late = seconds >= limits.prefetch_grows_for
    prefetch, history = raised.channel.global_prefetch_count or 0, view.channel_history(raised.channel.name)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=grows[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "holder": process_facts(link),
            "unacked": held(raised.channel),
            "gained": raised.gained,
            "prefetch": prefetch,
            "raised": raised.raised,
            "raised_seconds": span(raised.series),
            "acked": delta(history, "ack"),
            "ready": queue.messages_ready or 0,
            "grows_seconds": seconds,
            "warning_after_seconds": limits.prefetch_grows_for,
        },
        evidence=(
            Evidence(key="prefetch", value=prefetch, source=source("/api/channels", "global_prefetch_count")),
            Evidence(
                key="unacked",
                value=held(raised.channel),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "messages_unacknowledged"),
            ),
            Evidence(
                key="acked",
                value=delta(history, "ack"),
                unit=Unit.MESSAGES,
                source=source("/api/channels", "message_stats.ack"),
            ),
        ),
        involved=involved_consumers((queue,), (link,)),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )

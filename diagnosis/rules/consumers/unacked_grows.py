"""unacked-grows: consumers acknowledge, and what they hold only grows: some of what they take is never settled."""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Severity, Unit, source
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, RuleResult, View
from diagnosis.facts import consumer_facts, queue_facts
from diagnosis.hold_time import advised_prefetch, may_hold, prefetch
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, process_facts, queue_subject
from diagnosis.rules.consumers._shared.standstill import UnsettledGrowth, held, partial_standstill
from diagnosis.series import count, delta, span
from diagnosis.window import Series

NAME = "unacked-grows"

_RISES = 3
"""Rises of a growth that is a warning: two polls far apart may each fall into a burst."""

_NEW = 0.8
"""Share of all deliveries of its channel that a growth must cover, so that it began with the consumer."""

_OBSERVED = 20.0
"""Seconds of a channel's readings that show that it settles nothing; they reach back no further than half a minute."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that acknowledges and holds messages."""
    for queue in view.queues:
        limits = view.limits(queue)
        if not queue.consumers or queue.type == "stream" or held(queue) < limits.consumers.grows_least:
            continue
        if not view.moved(queue, "ack"):
            continue
        history, seen = view.history(queue), limits.consumers.grows_seen
        counted = not any(link.is_uncounted for link in view.links(queue))
        growth = partial_standstill(_at_rest(history, may_hold(view, queue)), limits.interval, counted=counted)
        if growth is None or growth.seconds < seen or history[-1].at.since(growth.series[-1].at) > seen:
            continue
        links = [link for link in view.links(queue) if link.consumer.ack_required is not False]
        uncommitted = any(link.channel is not None and link.channel.acks_uncommitted for link in links)
        if links and not uncommitted:
            yield _finding(view, queue, _holders(links), growth)


def _at_rest(history: Series[Queue], allowed: int | None) -> Series[Queue]:
    """Return the readings without those in which messages wait because the consumers hold as many as they may.

    Then the prefetch and the backlog decide how many they hold, and no message needs to be left unsettled.
    """
    if allowed is None:
        return history
    return tuple(seen for seen in history if held(seen.value) < allowed or not seen.value.messages_ready)


def _holders(links: list[ConsumerPath]) -> tuple[ConsumerPath, ...]:
    """Return the consumers that hold most of it, most first; those that hold little work as they should."""
    ranked = sorted(links, key=lambda link: (-_held_by(link), link.consumer.channel_name or "", link.consumer.tag))
    most = _held_by(ranked[0])
    return tuple(link for link in ranked if 2 * _held_by(link) >= most)


def _held_by(link: ConsumerPath) -> int:
    return held(link.channel) if link.channel is not None else 0


def _settles_none(view: View, holders: tuple[ConsumerPath, ...], seconds: float) -> bool:
    """Return whether the holders took messages for a while and settled none: all that came to them is held."""
    histories = [view.channel_history(link.channel.name) for link in holders if link.channel is not None]
    if len(histories) < len(holders):
        return False
    return all(
        span(each) >= min(seconds, _OBSERVED)
        and not delta(each, "ack")
        and 0 < delta(each, "deliver") <= held(each[-1].value) - held(each[0].value)
        for each in histories
    )


def _began_with(holders: tuple[ConsumerPath, ...], growth: UnsettledGrowth) -> bool:
    """Return whether consumers have hardly got a message before their unacknowledged messages began to grow."""
    sent = [count(link.channel.stats, "deliver") for link in holders if link.channel is not None]
    return len(sent) == len(holders) and growth.delivered >= _NEW * sum(sent)


def _finding(view: View, queue: Queue, holders: tuple[ConsumerPath, ...], growth: UnsettledGrowth) -> Finding:
    limits = view.limits(queue).consumers
    limit = [prefetch(view, link) for link in holders]
    total = None if None in limit or 0 in limit else sum(each or 0 for each in limit)
    settles_none = _settles_none(view, holders, growth.seconds)
    has_room = total is not None and 2 * held(queue) < total and not settles_none
    warning_after = limits.grows_new_for if has_room and _began_with(holders, growth) else limits.grows_for
    late = growth.seconds >= warning_after and growth.rises >= _RISES
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=queue_subject(queue),
        since=growth.series[0].at.iso(),
        facts={
            "queue": queue_facts(queue),
            "clients": client_names(holders),
            "holder": process_facts(holders[0]),
            "unacked": held(queue),
            "grown": growth.grown,
            "acked": growth.acked,
            "settles_none": settles_none,
            "delivered": growth.delivered,
            "unsettled_share": min(1.0, growth.grown / growth.delivered) if growth.delivered else None,
            "ready": queue.messages_ready or 0,
            "prefetch_advised": advised_prefetch(queue, growth.acked / growth.seconds / len(holders)),
            "prefetch_total": total,
            "grows_seconds": growth.seconds,
            "warning_after_seconds": warning_after,
        },
        evidence=(
            Evidence(
                key="unacked",
                value=held(queue),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged"),
            ),
            Evidence(
                key="acked", value=growth.acked, unit=Unit.MESSAGES, source=source("/api/queues", "message_stats.ack")
            ),
            Evidence(
                key="delivered",
                value=growth.delivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver"),
            ),
            *(
                Evidence(
                    key="holder",
                    value=_held_by(link),
                    unit=Unit.MESSAGES,
                    source=source("/api/channels", "messages_unacknowledged", "message_stats.ack"),
                    facts={
                        "held_by": consumer_facts(link),
                        "acked_by_it": delta(view.channel_history(link.channel.name), "ack") if link.channel else None,
                    },
                )
                for link in holders[:5]
            ),
        ),
        involved=involved_consumers((queue,), holders),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=growth.seconds,
    )

"""Queues whose consumers hold as many messages as their prefetch allows and acknowledge none.

Used by stuck-consumer and sac-stuck. Similar cases are left out: a slow consumer acknowledges now and then (the limit
follows its own rate), a requeue loop redelivers, a connection blocked by an alarm cannot acknowledge, an open
transaction delays acknowledgements, a standby of a single active consumer has nothing to acknowledge, and a consumer
without a prefetch limit that holds more than 1000 messages is a prefetch-hoarder.
`consumer_capacity` is not used: it is constant for quorum queues, and for classic queues it distinguishes slow from
fast consumers, not stuck from slow ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from ackscope.snapshot import Channel, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import prefetch
from diagnosis.memo import per_view
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series, Timestamped

BLOCKED = {"blocked", "blocking"}
"""States of a connection under an alarm, whose acknowledgements the broker does not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Consumers that hold messages of a queue and acknowledge none.

    Attributes:
        early: too short to be more than information.
        stuck: the stuck consumers.
        prefetches: the prefetch of each; 0 is no limit.
        consumers: how many consumers were judged.
        standbys: consumers that wait for the single active consumer to end.
        whole_queue: nothing is acknowledged at all; False if other consumers still work.
        growing: messages are ready, and more are published.
        published: messages published during the stall.
        seen_seconds: how long the stall was observed.
        held_seconds: minimum duration: as observed, or as long as the broker reports the channels idle.
        warning_after_seconds: from this duration on it is more than information.
        since: wall clock, seconds since 1970.
    """

    queue: Queue
    early: bool
    stuck: tuple[ConsumerPath, ...]
    prefetches: tuple[int, ...]
    consumers: int
    standbys: int
    whole_queue: bool
    growing: bool
    published: int
    seen_seconds: float
    held_seconds: float
    warning_after_seconds: float
    since: float

    @property
    def one_at_a_time(self) -> bool:
        """Whether every stuck consumer handles one message at a time; a long job looks the same."""
        return set(self.prefetches) == {1}


@dataclass(frozen=True, slots=True)
class _StuckConsumer:
    link: ConsumerPath
    prefetch: int
    seen_seconds: float
    held_seconds: float
    warning_after_seconds: float
    since: float


def stalls(view: View) -> tuple[Stall, ...]:
    """Return all stalls, in the order of the view."""
    return per_view(view, _stalls)


def _stalls(view: View) -> tuple[Stall, ...]:
    return tuple(_find(view))


def _find(view: View) -> Iterator[Stall]:
    """Judge every queue with consumers and unacknowledged messages: as a whole, else consumer by consumer."""
    for queue in view.queues:
        if not queue.consumers or not queue.messages_unacked or queue.type == "stream":
            continue
        links = _judged(view, queue)
        if not links:
            continue
        judge = _some_consumers if view.moved(queue, "ack") else _whole_queue
        stall = judge(view, queue, links)
        if stall is not None:
            yield stall


def _judged(view: View, queue: Queue) -> tuple[ConsumerPath, ...]:
    """Return the consumers that must and can acknowledge; empty if another cause explains that they do not."""
    links = [
        link
        for link in view.links(queue)
        if link.consumer.ack_required is not False and link.consumer.active is not False
    ]
    explained = any(
        (link.connection is None and bool(view.alarms))
        or (link.connection is not None and link.connection.state in BLOCKED)
        or (link.channel is not None and link.channel.acks_uncommitted)
        or prefetch(view, link) is None
        for link in links
    )
    return () if explained else tuple(links)


def _whole_queue(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of a queue if nothing is acknowledged while every consumer holds its full prefetch."""
    history = view.history(queue)
    limits = view.limits(queue)
    allowed = [prefetch(view, link) or 0 for link in links]
    unlimited = 0 in allowed
    unacked, ready = queue.messages_unacked or 0, queue.messages_ready or 0
    if unlimited and unacked > limits.consumers.hoard_messages:
        return None
    if not unlimited and unacked < sum(allowed):
        return None
    channels = {link.channel.name: link.channel.messages_unacked for link in links if link.channel is not None}
    if channels and all(held == 0 for held in channels.values()):
        # The queue counts them as unacknowledged but no channel holds them: the consumers did not cause that.
        return None
    stalled = stretch(history, _nothing_released if unlimited else _nothing_delivered)
    seen, idle = span(stalled), _idle_since(links)
    grew = ready - (stalled[0].value.messages_ready or 0)
    published = delta(stalled, "publish")
    if seen < limits.consumers.stuck_seen or (idle is None and not _statistics_refreshed(view, stalled)):
        return None
    need = limits.consumers.stuck_for
    if unlimited or ready == 0 or max(allowed) == 1:
        need = limits.consumers.stuck_long
    if ready == 0 and unacked <= len(links):
        need = limits.consumers.stuck_long_job
    own_pace = limits.consumers.stuck_patience * _ack_interval(history, stalled)
    need = max(need, min(own_pace, limits.consumers.stuck_long_job))
    held = max(seen, _idle_for(view, idle))
    early = held < need
    if early and (need > limits.consumers.stuck_for or held < limits.early):
        return None
    return Stall(
        queue=queue,
        early=early,
        stuck=links,
        prefetches=tuple(allowed),
        consumers=len(links),
        standbys=sum(link.consumer.active is False for link in view.links(queue)),
        whole_queue=True,
        growing=ready > 0 and (published > 0 or grew > 0),
        published=published,
        seen_seconds=seen,
        held_seconds=held,
        warning_after_seconds=need,
        since=stalled[0].at.wall if idle is None else min(idle, stalled[0].at.wall),
    )


def _some_consumers(view: View, queue: Queue, links: tuple[ConsumerPath, ...]) -> Stall | None:
    """Return the stall of the consumers that hold their full prefetch and acknowledge nothing while others work."""
    if len(links) < 2:
        return None
    found: list[_StuckConsumer] = []
    for link in links:
        allowed = prefetch(view, link) or 0
        if allowed == 0 or link.channel is None or link.channel.consumer_count != 1:
            continue
        if (link.channel.messages_unacked or 0) < allowed:
            continue
        stalled = stretch(view.channel_history(link.channel.name), partial(_full_and_unchanged, allowed))
        seen, idle = span(stalled), _idle_since((link,))
        history = view.history(queue)
        others = _since(history, stalled[0].at.mono)
        acked = delta(others, "ack")
        if seen < view.thresholds.consumers.stuck_seen or acked <= 0:
            continue
        # Each of the others takes this long for one message on average; this one gets a multiple of it.
        pace = span(others) * (len(links) - 1) / acked
        need = max(view.thresholds.consumers.stuck_for, view.thresholds.consumers.stuck_patience * pace)
        need = (
            view.thresholds.consumers.stuck_long_job
            if allowed == 1
            else min(need, view.thresholds.consumers.stuck_long_job)
        )
        held = max(seen, _idle_for(view, idle))
        if held >= need:
            since = stalled[0].at.wall if idle is None else idle
            found.append(_StuckConsumer(link, allowed, seen, held, need, since))
    if not found:
        return None
    return Stall(
        queue=queue,
        early=False,
        stuck=tuple(each.link for each in found),
        prefetches=tuple(each.prefetch for each in found),
        consumers=len(links),
        standbys=0,
        whole_queue=False,
        growing=False,
        published=delta(view.history(queue), "publish"),
        seen_seconds=min(each.seen_seconds for each in found),
        held_seconds=min(each.held_seconds for each in found),
        warning_after_seconds=min(each.warning_after_seconds for each in found),
        since=min(each.since for each in found),
    )


def _full_and_unchanged(prefetch_count: int, older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    return (
        (older.value.messages_unacked or 0) >= prefetch_count
        and (newer.value.messages_unacked or 0) >= prefetch_count
        and delta((older, newer), "ack", "deliver", "redeliver") == 0
    )


def _nothing_delivered(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return _nothing_acked(older, newer) and delta((older, newer), "deliver") == 0


def _nothing_released(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether nearly all deliveries stay unacknowledged; without a prefetch limit deliveries continue."""
    gained = (newer.value.messages_unacked or 0) - (older.value.messages_unacked or 0)
    return _nothing_acked(older, newer) and gained >= 0.9 * delta((older, newer), "deliver")


def _nothing_acked(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (
        bool(older.value.consumers)
        and bool(older.value.messages_unacked)
        and delta((older, newer), "ack") == 0
        and delta((older, newer), "redeliver") == 0
    )


def _idle_since(links: tuple[ConsumerPath, ...]) -> float | None:
    """Return since when all channels are idle, by the broker's clock; None if one is busy or unknown."""
    moments = [link.channel.idle_since if link.channel else None for link in links]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def _idle_for(view: View, idle: float | None) -> float:
    """Return the seconds that the channels were idle when they were read; 0 if unknown."""
    readings = view.window.readings("channels")
    return 0.0 if idle is None or not readings else max(0.0, readings[-1].at.wall - idle)


def _statistics_refreshed(view: View, stalled: Series[Queue]) -> bool:
    """Return whether the broker refreshes its statistics; if it does not, every consumer looks stalled."""
    totals = [seen.value for seen in view.window.readings("overview") if seen.at.mono >= stalled[0].at.mono]
    ready = {seen.value.messages_ready for seen in stalled}
    moved = len(totals) > 1 and totals[0].stats != totals[-1].stats
    return moved or delta(stalled, "publish") > 0 or len(ready) > 1


def _ack_interval(history: Series[Queue], stalled: Series[Queue]) -> float:
    """Return the seconds between acknowledgements before the stall; 0 if none was seen."""
    before = history[: len(history) - len(stalled) + 1]
    acked = delta(before, "ack")
    return span(before) / acked if acked > 0 else 0.0


def _since(history: Series[Queue], mono: float) -> Series[Queue]:
    return tuple(seen for seen in history if seen.at.mono >= mono)

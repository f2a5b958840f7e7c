"""Queues whose consumers hold all that they may hold, and acknowledge nothing: the search behind stuck-consumer.

Told from its look-alikes: a slow consumer acknowledges now and then (and is given time by its own pace), a requeue
loop redelivers, a blocked connection (alarm) cannot acknowledge, an open transaction holds acknowledgements back,
a standby of a single active consumer has nothing to acknowledge, and one without a prefetch limit that holds a
thousand messages is a hoarder. `consumer_capacity` is not used: for quorum queues it is constant, and for classic
ones it tells slow from fast, not stuck from slow.
"""

from collections.abc import Iterator
from functools import partial

from ackscope.snapshot import Channel, Queue
from diagnosis.contract import Link, View
from diagnosis.hold_time import prefetch
from diagnosis.kept import kept
from diagnosis.rules.consumers.stuck_report import Hold
from diagnosis.series import delta, span, stretch
from diagnosis.window import Seen, Series

BLOCKED = {"blocked", "blocking"}
"""A connection under an alarm, whose acknowledgements the broker does not read."""


def holds(view: View) -> tuple[Hold, ...]:
    """All such queues, in the order of the view."""
    return kept(view, _Holds).found


class _Holds:
    def __init__(self, view: View) -> None:
        self.found = tuple(_find(view))


def _find(view: View) -> Iterator[Hold]:
    """Every queue with consumers and unacknowledged messages, first whole, then consumer by consumer."""
    for queue in view.queues:
        if not queue.consumers or not queue.messages_unacked or queue.type == "stream":
            continue
        links = _judged(view, queue)
        if not links:
            continue
        hold = _some_hold(view, queue, links) if view.moved(queue, "ack") else _all_hold(view, queue, links)
        if hold is not None:
            yield hold


def _judged(view: View, queue: Queue) -> tuple[Link, ...]:
    """The consumers that must acknowledge and can; none where another cause explains that they do not."""
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


def _all_hold(view: View, queue: Queue, links: tuple[Link, ...]) -> Hold | None:
    """The whole queue stands still: nothing is acknowledged, and every consumer is full."""
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
        # The queue counts them as held, and no channel holds them: that is not the consumers' doing.
        return None
    still = stretch(history, _held_open if unlimited else _motionless)
    seen, idle = span(still), _idle_since(links)
    grew = ready - (still[0].value.messages_ready or 0)
    published = delta(still, "publish")
    if seen < limits.consumers.stuck_seen or (idle is None and not _alive(view, still)):
        return None
    need = limits.consumers.stuck_for
    if unlimited or ready == 0 or max(allowed) == 1:
        need = limits.consumers.stuck_long
    if ready == 0 and unacked <= len(links):
        need = limits.consumers.stuck_long_job
    need = max(need, min(limits.consumers.stuck_patience * _pace(history, still), limits.consumers.stuck_long_job))
    held = max(seen, _idle_for(view, idle))
    early = held < need
    if early and (need > limits.consumers.stuck_for or held < limits.early):
        return None
    return Hold(
        queue=queue,
        early=early,
        holders=links,
        allowed=tuple(allowed),
        consumers=len(links),
        standby=sum(link.consumer.active is False for link in view.links(queue)),
        whole=True,
        growing=ready > 0 and (published > 0 or grew > 0),
        published=published,
        seen=seen,
        held=held,
        since=still[0].at.wall if idle is None else min(idle, still[0].at.wall),
    )


def _some_hold(view: View, queue: Queue, links: tuple[Link, ...]) -> Hold | None:
    """Some consumers are full and acknowledge nothing, while the queue's others work on."""
    if len(links) < 2:
        return None
    found: list[tuple[Link, int, float, float, float]] = []
    for link in links:
        allowed = prefetch(view, link) or 0
        if allowed == 0 or link.channel is None or link.channel.consumer_count != 1:
            continue
        if (link.channel.messages_unacked or 0) < allowed:
            continue
        still = stretch(view.channel_history(link.channel.name), partial(_full_and_still, allowed))
        seen, idle = span(still), _idle_since((link,))
        history = view.history(queue)
        others = _since_then(history, still[0].at.mono)
        acked = delta(others, "ack")
        if seen < view.thresholds.consumers.stuck_seen or acked <= 0:
            continue
        # What each of the others takes for one message, on average, is what this one may take some times over.
        pace = span(others) * (len(links) - 1) / acked
        need = max(view.thresholds.consumers.stuck_for, view.thresholds.consumers.stuck_patience * pace)
        need = (
            view.thresholds.consumers.stuck_long_job
            if allowed == 1
            else min(need, view.thresholds.consumers.stuck_long_job)
        )
        held = max(seen, _idle_for(view, idle))
        if held >= need:
            found.append((link, allowed, seen, held, still[0].at.wall if idle is None else idle))
    if not found:
        return None
    return Hold(
        queue=queue,
        early=False,
        holders=tuple(item[0] for item in found),
        allowed=tuple(item[1] for item in found),
        consumers=len(links),
        standby=0,
        whole=False,
        growing=False,
        published=delta(view.history(queue), "publish"),
        seen=min(item[2] for item in found),
        held=min(item[3] for item in found),
        since=min(item[4] for item in found),
    )


def _full_and_still(full: int, older: Seen[Channel], newer: Seen[Channel]) -> bool:
    return (
        (older.value.messages_unacked or 0) >= full
        and (newer.value.messages_unacked or 0) >= full
        and delta((older, newer), "ack", "deliver", "redeliver") == 0
    )


def _motionless(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return _held(older, newer) and delta((older, newer), "deliver") == 0


def _held_open(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    """Without a prefetch limit deliveries go on: then whatever is delivered must stay held."""
    gained = (newer.value.messages_unacked or 0) - (older.value.messages_unacked or 0)
    return _held(older, newer) and gained >= 0.9 * delta((older, newer), "deliver")


def _held(older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return (
        bool(older.value.consumers)
        and bool(older.value.messages_unacked)
        and delta((older, newer), "ack") == 0
        and delta((older, newer), "redeliver") == 0
    )


def _idle_since(links: tuple[Link, ...]) -> float | None:
    """Since when all channels are idle, by the broker's clock; None where one is busy or not known."""
    moments = [link.channel.idle_since if link.channel else None for link in links]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def _idle_for(view: View, idle: float | None) -> float:
    """Seconds that the channels were idle when they were read; 0 where that is not known."""
    readings = view.window.readings("channels")
    return 0.0 if idle is None or not readings else max(0.0, readings[-1].at.wall - idle)


def _alive(view: View, still: Series[Queue]) -> bool:
    """Whether the broker's figures are renewed at all: a broker that stopped counting looks like standstill."""
    totals = [seen.value for seen in view.window.readings("overview") if seen.at.mono >= still[0].at.mono]
    ready = {seen.value.messages_ready for seen in still}
    moved = len(totals) > 1 and totals[0].stats != totals[-1].stats
    return moved or delta(still, "publish") > 0 or len(ready) > 1


def _pace(history: Series[Queue], still: Series[Queue]) -> float:
    """Seconds between acknowledgements before the standstill; 0 where none was seen."""
    before = history[: len(history) - len(still) + 1]
    acked = delta(before, "ack")
    return span(before) / acked if acked > 0 else 0.0


def _since_then(history: Series[Queue], mono: float) -> Series[Queue]:
    return tuple(seen for seen in history if seen.at.mono >= mono)

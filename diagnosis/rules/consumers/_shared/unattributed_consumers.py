"""Queues whose AMQP 1.0 consumers have no reported session: judged by the figures of the queue itself.

The queue reports how many messages are held and ready, but not how many arrive or leave. A consumer that settles
nothing and one that settles fewer than arrive therefore look alike at first. The difference is whether anything but
arrivals happened:

* A classic queue reports the share of time in which its consumers could take more. From the moment when none of them
  can, one divided by this share rises in a straight line; each delivery bends it (`rabbit_queue_consumers`, seen on
  4.0.5).
* The log of a quorum queue gains a command for each arrival, each settlement and each change of credit. If it gains as
  many as the queue gains messages, all of them are arrivals (Prometheus endpoint, seen on 4.0.5).

Where AMQP 0-9-1 consumers share the queue, what they may hold at most is left out, and only growth beyond it counts.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from ackscope.snapshot import Connection, Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import prefetch
from diagnosis.memo import per_view
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.rules.consumers._shared.standstill import held, never_falls, ready
from diagnosis.series import grows_at_once, nearest, rising, span, stretch
from diagnosis.unattributed import counted, gained, suspects
from diagnosis.window import Series, Timestamped

MANY = 20
"""Messages held from which on growth is more than that of a handler that takes several at once."""

_REFRESH = 7.0
"""Seconds by which the statistics of a queue may be older than the commands of its log, or than each other."""
_BUSIER = 1.3
"""Factor by which the work of a queue may rise while what its consumers hold grows; more is more traffic."""
_FULL = 0.7


class Standing(StrEnum):
    """What the consumers of a queue do."""

    HOLDS = "holds"
    """They hold all that they asked for and settle none."""
    GROWS = "grows"
    """They hold more and more: they settle none, or fewer than they take."""
    SLOW = "slow"
    """They settle fewer than arrive."""
    NO_CREDIT = "no_credit"
    """They hold none and ask for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnattributedQueue:
    """A queue with such consumers.

    Attributes:
        links: these consumers, those that wait for a single active consumer to end left out. If one connection alone
            can be their client, it is theirs.
        suspects: the connections that may be their clients.
        history: its readings; `messages_unacked` is what these consumers hold at least.
        alone: no other consumer takes messages from it.
    """

    queue: Queue
    links: tuple[ConsumerPath, ...]
    suspects: tuple[Connection, ...]
    history: Series[Queue]
    alone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is known of the consumers of such a queue.

    Attributes:
        tail: the readings that show it.
        since: when it began at the latest, wall clock.
        held_seconds: for how long it lasts at least, by the broker's figures.
        proven: whether it is known that nothing was settled.
    """

    of: UnattributedQueue
    standing: Standing
    tail: Series[Queue]
    since: float
    held_seconds: float
    proven: bool = False


def unattributed(view: View, queue: Queue) -> UnattributedQueue | None:
    """Return what is known of the unattributed consumers of a queue; None without any."""
    return per_view(view, _all).get(queue.key)


def judgement(view: View, queue: Queue) -> Judgement | None:
    """Return what the unattributed consumers of a queue do; None if it is nothing remarkable, or unknown."""
    return per_view(view, _judged).get(queue.key)


def settles(view: View, queue: Queue) -> bool:
    """Return whether the only such consumer of a queue is known to have settled messages lately, or holds none."""
    found = unattributed(view, queue)
    if found is None or not found.history:
        return False
    recent = tuple(
        seen for seen in found.history if found.history[-1].at.since(seen.at) <= view.limits(queue).consumers.stuck_long
    )
    falls = any(held(newer.value) < held(older.value) for older, newer in pairwise(recent))
    return not held(queue) or (len(found.links) == 1 and found.alone and falls)


def _all(view: View) -> dict[tuple[str, str], UnattributedQueue]:
    found = {}
    for queue in view.uncounted_queues:
        links = view.links(queue)
        if queue.type == "stream" or queue.name.startswith(MQTT_SESSIONS):
            continue
        own = tuple(each for each in links if is_unattributed(each) and each.consumer.active is not False)
        if own and suspects(view, queue.vhost):
            found[queue.key] = _of(view, queue, own, tuple(each for each in links if not is_unattributed(each)))
    return found


def is_unattributed(link: ConsumerPath) -> bool:
    """Return whether the broker tells neither a channel nor a session nor a connection of a consumer."""
    return link.is_uncounted and link.session is None and link.stream is None and link.connection is None


def _of(view: View, queue: Queue, own: tuple[ConsumerPath, ...], others: tuple[ConsumerPath, ...]) -> UnattributedQueue:
    history = view.history(queue)
    if others:
        allowed = [prefetch(view, each) if each.consumer.ack_required is not False else -1 for each in others]
        most = None if 0 in allowed or None in allowed else sum(max(0, each or 0) for each in allowed)
        history = tuple(
            Timestamped(seen.at, replace(seen.value, messages_unacked=max(0, held(seen.value) - most)))
            for seen in history
            if most is not None
        )
    holding = stretch(history, lambda older, _: held(older.value) > 0)
    # Who holds messages was there when they were held first: without its connection they would be ready again.
    since = holding[0].at.wall if holding and held(holding[-1].value) else None
    found = suspects(view, queue.vhost, since) or suspects(view, queue.vhost)
    links = tuple(replace(each, connection=found[0]) for each in own) if len(found) == 1 else own
    return UnattributedQueue(queue=queue, links=links, suspects=found, history=history, alone=not others)


def _judged(view: View) -> dict[tuple[str, str], Judgement]:
    found = ((key, _judge(view, each)) for key, each in per_view(view, _all).items())
    return {key: each for key, each in found if each is not None}


def _judge(view: View, found: UnattributedQueue) -> Judgement | None:
    if len(found.history) < 2:
        return None
    if not found.alone:
        return _grows(view, found)
    if not held(found.queue):
        return _no_credit(view, found)
    return _holds(view, found) or _grows(view, found)


def _no_credit(view: View, found: UnattributedQueue) -> Judgement | None:
    """Judge consumers that hold nothing at any reading, while messages wait and do not become fewer."""

    def waits(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        return not held(older.value) and 0 < ready(older.value) <= ready(newer.value)

    tail = stretch(found.history, waits)
    if not ready(found.queue) or span(tail) < view.limits(found.queue).early:
        return None
    moved, seconds = moves(view, found, tail)
    # What is settled when it is sent is never held.
    sends = any(each.consumer.ack_required is False for each in found.links)
    if moved or (sends and moved is None):
        return None
    return Judgement(
        of=found,
        standing=Standing.NO_CREDIT,
        tail=tail,
        since=tail[0].at.wall,
        held_seconds=max(span(tail), seconds),
        proven=moved is False,
    )


def _holds(view: View, found: UnattributedQueue) -> Judgement | None:
    """Judge consumers that hold as many at each reading, while messages wait: they settle none, or take as many."""
    now = held(found.queue)

    def stays(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        return held(older.value) == now and 0 < ready(older.value) <= ready(newer.value)

    tail = stretch(found.history, stays)
    if ready(found.queue) and span(tail) >= view.limits(found.queue).consumers.stuck_seen:
        moved, seconds = moves(view, found, tail)
        if moved is False:
            lasts = max(span(tail), seconds)
            since = tail[-1].at.wall - lasts
            return Judgement(of=found, standing=Standing.HOLDS, tail=tail, since=since, held_seconds=lasts, proven=True)
    return _slow(view, found)


def _slow(view: View, found: UnattributedQueue) -> Judgement | None:
    """Judge consumers that always hold about as many, and settle, while more and more messages wait."""
    most = max(held(seen.value) for seen in found.history)
    full = stretch(found.history, lambda older, _: held(older.value) >= _FULL * most)
    growing = rising(full, view.limits(found.queue).interval, ready)
    if held(found.queue) < _FULL * most or span(growing) < view.limits(found.queue).early:
        return None
    moved, _ = moves(view, found, growing)
    if not moved:
        return None
    return Judgement(
        of=found,
        standing=Standing.SLOW,
        tail=growing,
        since=growing[0].at.wall,
        held_seconds=span(growing),
    )


def _grows(view: View, found: UnattributedQueue) -> Judgement | None:
    """Judge consumers that hold more at nearly each reading, although the queue has no more work than before."""
    number = found.queue.consumers or 0
    # More consumers hold more. At first the broker reports none.
    alike = stretch(found.history, lambda older, _: (older.value.consumers or 0) >= number)
    tail = never_falls(alike, held)
    lowest = min((held(seen.value) for seen in tail), default=0)
    tail = tail[max((place for place, seen in enumerate(tail) if held(seen.value) == lowest), default=0) :]
    numbers = [held(seen.value) for seen in tail]
    grown = numbers[-1] - numbers[0] if numbers else 0
    if len(tail) < 4 or span(tail) < view.limits(found.queue).early or numbers[-1] < MANY or 2 * grown < numbers[-1]:
        return None
    half = tail[0].at.mono + span(tail) / 2
    place = min(range(1, len(tail) - 1), key=lambda at: abs(tail[at].at.mono - half))
    first, second = tail[: place + 1], tail[place:]
    if grows_at_once(numbers) or numbers[-1] - numbers[place] < 0.25 * grown:
        return None
    if _work(second) > _BUSIER * _work(first) > 0:
        return None
    arrived = (tail[-1].value.messages or 0) - (tail[0].value.messages or 0)
    extra = _more_than_arrivals(view, found, tail)
    return Judgement(
        of=found,
        standing=Standing.GROWS,
        tail=tail,
        since=tail[0].at.wall,
        held_seconds=span(tail),
        proven=extra is not None and found.alone and extra <= _late(arrived, span(tail)),
    )


def _work(series: Series[Queue]) -> float:
    """Return the work of the process of a queue, reductions per second; 0 if unknown."""
    first, latest = series[0].value.reductions, series[-1].value.reductions
    return 0.0 if first is None or latest is None or not span(series) else (latest - first) / span(series)


def moves(view: View, found: UnattributedQueue, tail: Series[Queue]) -> tuple[bool | None, float]:
    """Return whether messages were delivered or settled over some readings, and for how long surely not.

    None if it is unknown.
    """
    if found.queue.type == "classic":
        return _delivers(tail)
    extra = _more_than_arrivals(view, found, tail)
    if extra is None or span(tail) < 2 * _REFRESH:
        return None, 0.0
    arrived = (tail[-1].value.messages or 0) - (tail[0].value.messages or 0)
    slack = _late(max(arrived, 0) + extra, span(tail))
    return (False, 0.0) if extra <= slack else (True, 0.0) if extra > 2 * slack else (None, 0.0)


def _late(number: float, seconds: float) -> float:
    """Return how many of some messages the age of statistics may hide."""
    return 1.0 + _REFRESH * number / seconds if seconds else number


def _more_than_arrivals(view: View, found: UnattributedQueue, tail: Series[Queue]) -> int | None:
    """Return how many commands the log of a quorum queue gained beyond the messages that it gained; None if unknown."""
    series = counted(view)
    if not series or not tail or found.queue.type != "quorum":
        return None
    first, latest = nearest(series, tail[0].at), nearest(series, tail[-1].at)
    if any(abs(one.at.since(two.at)) > _REFRESH for one, two in ((first, tail[0]), (latest, tail[-1]))):
        return None
    vhost, name = found.queue.key
    commands = gained((first, latest), lambda each: each.commands.get(vhost, {}).get(name))
    if commands is None or commands < 0 or first.at == latest.at:
        return None
    return max(0, commands - (tail[-1].value.messages or 0) + (tail[0].value.messages or 0))


def _delivers(tail: Series[Queue]) -> tuple[bool | None, float]:
    """Judge by the share of the time in which consumers of a classic queue could take more; see the module."""
    points: list[tuple[float, float]] = []
    for seen in tail:
        share = seen.value.consumer_capacity
        if share is None or share <= 0:
            return None, 0.0
        if not points or 1 / share != points[-1][1]:
            points.append((seen.at.mono, 1 / share))
    if len(points) < 3:
        return None, 0.0
    (start, lowest), (end, highest) = points[0], points[-1]
    if any(after <= before for (_, before), (_, after) in pairwise(points)):
        return True, 0.0
    # Seconds per unit: for how long they could take more before.
    able = (end - start) / (highest - lowest)
    straight = all(abs(start + (value - lowest) * able - at) <= _REFRESH for at, value in points)
    return (False, able * (highest - 1)) if straight else (True, 0.0)

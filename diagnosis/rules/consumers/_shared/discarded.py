"""Messages that left a queue after a delivery and without an acknowledgement: rejected, or expired on their return.

A message does not expire while a consumer holds it. If it is returned later than its TTL, because the consumer ends or
requeues it, it expires at once; seen on 3.10 and 4.3, classic and quorum. The ledger counts it like a rejected one.
What tells them apart:

- A reject needs no return. What is lost steadily while nothing is redelivered and the same consumers stay was rejected.
  In a queue whose messages wait for their TTL, a consumer that requeues all that it holds loses all of it, at once.
- What expires was in the queue for its TTL. Messages times seconds in the queue are no fewer than those that expired,
  times the TTL.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from ackscope.findings import Finding
from ackscope.snapshot import Queue
from diagnosis.contract import Relation, View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import Ledger, from_its_beginning, ledger, levels, may_have_lost, settles_unseen
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.comings import comings, seen_connections
from diagnosis.rules.consumers._shared.consequences import queue_key
from diagnosis.rules.consumers._shared.returned import returned
from diagnosis.rules.consumers.poison_drop import at_limit, delivery_limit
from diagnosis.series import count, delta, span
from diagnosis.window import Series, Timestamped

_LATE = 4.5
"""Seconds by which lengths and counters of one event may be seen apart: a refresh interval of the broker, and less."""
_SHORTEST_EXPIRATION = 1.0
"""Seconds that a message's own expiration is assumed to have at least; no list shows it."""
_MISSED = 2.0
"""How many times more messages may have been in the queue than the readings show."""
_STEADY = 3
"""Minimum intervals with lost messages that show a steady loss."""
_BETWEEN = 0.25
"""Share of what steady rejects would lose between returns; less is due to counters that are refreshed late."""


@dataclass(frozen=True, slots=True)
class ExpiredReturns:
    """Shows that messages may have expired when they were returned.

    Attributes:
        ended: whether a consumer ended meanwhile; else one that stays requeues messages.
        only: whether nothing was lost between returns. Else messages may have been rejected, too.
    """

    ended: bool
    only: bool


@dataclass(frozen=True, slots=True)
class Discarded:
    """What one queue without a dead-letter exchange lost after delivery.

    Attributes:
        history: the readings that `found` balances.
        lost: messages, without those that a delivery limit deleted.
        ttl: seconds that messages live in the queue; None if it has no such setting.
        returned: how they may have expired on their return; None if they were rejected.
    """

    queue: Queue
    history: Series[Queue]
    found: Ledger
    lost: int
    ttl: float | None
    returned: ExpiredReturns | None


def discarded(view: View) -> tuple[Discarded, ...]:
    """Return the queues without a dead-letter exchange that lost delivered messages."""
    return per_view(view, _discarded)


def _discarded(view: View) -> tuple[Discarded, ...]:
    return tuple(each for queue in view.queues if (each := _of(view, queue)) is not None)


def _of(view: View, queue: Queue) -> Discarded | None:
    if queue.setting("dead-letter-exchange") is not None or not count(queue.stats, "deliver", "get"):
        return None
    if not may_have_lost(view, queue) or settles_unseen(view, queue):
        return None
    history = from_its_beginning(view, queue)
    found = ledger(history, may_hold(view, queue), returned=returned(view, queue, history))
    if found is None:
        return None
    limit = delivery_limit(queue, view.version)
    # What a delivery limit deletes is reported by poison-drop.
    lost = found.discarded - (0 if limit is None else at_limit(found.discarded, found.redelivered, limit))
    if lost - found.discarded_error < view.limits(queue).queues.loss_least:
        return None
    return Discarded(queue, history, found, lost, time_to_live(queue), expired_returns(view, queue, history, lost))


def time_to_live(queue: Queue) -> float | None:
    """Return the seconds that messages live in a queue; None without such a setting."""
    ttl = queue.setting("message-ttl")
    return ttl / 1000 if isinstance(ttl, int) else None


def expired_returns(view: View, queue: Queue, history: Series[Queue], lost: int) -> ExpiredReturns | None:
    """Return how messages that were lost after delivery may have expired on their return; None if they cannot have.

    Without a TTL of the queue, its messages may have an expiration of their own.

    Args:
        view: the view that is being judged.
        queue: the queue at its latest reading.
        history: readings of it.
        lost: messages that were lost after delivery within these readings.
    """
    history = tuple(seen for seen in history if levels(seen.value) is not None)
    ttl = time_to_live(queue)
    if len(history) < 2 or not _lived(history, lost, _SHORTEST_EXPIRATION if ttl is None else ttl):
        return None
    came = [at for at in _comings(view, queue) if _served_before(history, at)]
    ended = bool(came) or comings(history) > 1
    if not ended and not delta(history, "redeliver"):
        return None
    quiet = _between_returns(history, came)
    newest = max(came, default=history[0].at.wall)
    stayed = [each for each in (_since(run, newest) for run in quiet) if len(each) > 1]
    steady = [each for each in stayed if _is_steady(each)]
    balances = [found for each in steady if (found := ledger(each, may_hold(view, queue))) is not None]
    if sum(each.proven_discarded for each in balances) >= view.limits(queue).queues.loss_least:
        return None
    if_steady = lost * sum(map(span, quiet)) / span(history)
    known = if_steady >= 2 * view.limits(queue).queues.loss_least
    return ExpiredReturns(ended=ended, only=known and sum(map(_rise, quiet)) <= _BETWEEN * if_steady)


def _lived(history: Series[Queue], lost: int, ttl: float) -> bool:
    """Return whether so many messages can have been in the queue for their TTL."""
    sizes = [(seen.value.messages_ready or 0) + (seen.value.messages_unacked or 0) for seen in history]
    seconds = sum(
        max(before, after) * newer.at.since(older.at)
        for (older, newer), (before, after) in zip(pairwise(history), pairwise(sizes), strict=True)
    )
    # Nobody knows for how long the first ones had been there, and readings may miss the largest lengths.
    return (lost - sizes[0]) * ttl <= _MISSED * seconds


def _comings(view: View, queue: Queue) -> list[float]:
    """Return the times (wall clock) at which consumers of a queue began, as far as known."""
    known, found = seen_connections(view), []
    for seen in view.window.readings("consumers"):
        for each in seen.value:
            if (each.vhost, each.queue) == queue.key:
                connection = known.get(each.connection_name or "")
                found.append(connection.connected_at if connection else None)
    opened = view.channels_before
    for link in view.links(queue):
        series = view.channel_history(link.channel.name) if link.channel is not None else ()
        if series and opened is not None and series[0].at.mono > opened.mono:
            found.append(series[0].at.wall)
    return [at for at in found if at is not None]


def _served_before(history: Series[Queue], at: float) -> bool:
    """Return whether messages were delivered to an earlier consumer within these readings."""
    before = [seen for seen in history if seen.at.wall < at]
    return len(before) > 1 and count(before[-1].value.stats, "deliver") > 0


def _between_returns(history: Series[Queue], came: list[float]) -> list[Series[Queue]]:
    """Return the stretches of readings in which nothing was redelivered, and no consumer came or went."""

    def returns(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        replaced = any(older.at.wall <= at <= newer.at.wall for at in came)
        known = None not in (older.value.consumers, newer.value.consumers)
        absent = known and older.value.consumers != newer.value.consumers
        return replaced or absent or delta((older, newer), "redeliver") > 0

    events = [
        (older.at.mono - _LATE, newer.at.mono + _LATE) for older, newer in pairwise(history) if returns(older, newer)
    ]
    found: list[Series[Queue]] = []
    for older, newer in pairwise(history):
        if any(older.at.mono < end and newer.at.mono > begin for begin, end in events):
            continue
        if found and found[-1][-1] is older:
            found[-1] = (*found[-1], newer)
        else:
            found.append((older, newer))
    return found


def _is_steady(series: Series[Queue]) -> bool:
    """Return whether messages are lost between most of the readings, and not at once."""
    rises = sum(_rise(pair) > 0 for pair in pairwise(series))
    return rises >= _STEADY and 2 * rises >= len(series) - 1


def _since(series: Series[Queue], wall: float) -> Series[Queue]:
    return tuple(seen for seen in series if seen.at.wall >= wall)


def _rise(series: Series[Queue]) -> int:
    first, final = levels(series[0].value), levels(series[-1].value)
    return 0 if first is None or final is None else final.discarded - first.discarded


def _returned_queue(_view: View, finding: Finding) -> Iterable[Hashable]:
    returned = finding.facts.get("returned") or finding.facts.get("perhaps_expired")
    return ((finding.subject.vhost, finding.subject.name),) if returned else ()


QUEUE_RETURNED_TO = Relation(_returned_queue, queue_key)
"""The cause is that returned messages expire, or may; the effect is about the queue that they come back to."""

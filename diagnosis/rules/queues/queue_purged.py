"""queue-purged: a queue was emptied at once, without any delivery.

A purge leaves no counter. Between two readings, all messages that were ready are gone, and none of them was delivered.
Messages that a publisher gave the same `expiration` leave a queue in the same way, so the cause is likely, not certain.
A queue whose messages may have reached its message TTL is left to the rules about that.
Source: https://www.rabbitmq.com/docs/management-cli; seen on 3.10, 4.0 and 4.3
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from ackscope.clock import Instant
from ackscope.findings import Evidence, Fact, Finding, Severity, Unit, source
from ackscope.second_source import NativeTotals, SettingsUnknown
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.ledger import (
    Ledger,
    from_its_beginning,
    ledger,
    levels,
    may_have_lost,
    may_settle_unseen,
    most_uncounted,
    served_by_visits,
)
from diagnosis.preconditions import each_known, if_known
from diagnosis.purpose import DELIVERED
from diagnosis.routes import is_delay
from diagnosis.rules.consumers._shared.by_totals import DELETED_BY
from diagnosis.rules.publishers._shared.overflow import has_length_limit, level
from diagnosis.rules.queues._shared.deletions import deletions_of
from diagnosis.rules.queues._shared.limit_cuts import limit_cut
from diagnosis.rules.queues._shared.queue import involved_queue, queue_subject
from diagnosis.series import REFRESH, delta, span
from diagnosis.unattributed import counted
from diagnosis.window import Series

NAME = "queue-purged"

_LIMITS = ("max-length", "max-length-bytes", "overflow")
_YOUNG = 0.9
"""Share of the messages that must be younger than the message TTL."""
_LIKE = 0.5
"""Least size of a purge between readings that are far apart, as a share of the smallest one that was seen."""
_BESIDES = 0.2
"""Share of its messages that may leave a queue between its purges, by late counters."""
_MOSTLY = 0.5
"""Share of what left a queue that left between two readings, and that neither totals nor late counters may explain."""
_BEFORE, _AFTER = 2, 3
"""Readings before and after the first one of a purge within which its messages are balanced."""

Purge = tuple[Series[Queue], Ledger]
"""The two readings between which a queue was emptied at once, and the balance around them."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that lost all its ready messages between two readings."""
    yield from each_known(NAME, view.queues, lambda queue: _judge(view, queue))


def _judge(view: View, queue: Queue) -> Iterator[RuleResult]:
    found = purges(view, queue)
    if found:
        yield _finding(view, queue, found)


def purges(view: View, queue: Queue) -> tuple[Purge, ...]:
    """Return the times at which a queue was emptied at once, the latest first."""
    if view.reads_only_metrics:
        return _purges_by_totals(view, queue)
    # What was published to a delay queue at once also expires at once.
    if not may_have_lost(view, queue) or may_settle_unseen(view, queue) or is_delay(view, queue):
        return ()
    # At a length limit new messages replace the old ones, which looks like a purge and a refill.
    full = level(queue) >= view.limits(queue).queues.full_share
    history, cut = view.history(queue), limit_cut(view, queue)
    cut_at = None if cut is None else cut.after.at
    seen: list[Purge] = []
    latest = len(history)
    for place in range(len(history) - 2, -1, -1):
        pair = history[place : place + 2]
        if _stays_full(view, pair) or pair[1].at == cut_at:
            continue
        # Beside a purge, the balance of its surroundings makes other readings look like one.
        if seen and (place + _AFTER > latest or not _fell_by_half(pair)):
            continue
        by_length = full or _is_full(view, pair[0].value)
        found = _fell(view, pair, history) if by_length else _emptied(view, pair, history)
        least = view.limits(queue).queues.loss_least
        if found is None or _purged(pair) < least:
            continue
        # Of fewer messages than the delay between counters can explain, the length must show that they left at once.
        at_once = _fell_by_half(pair) or _purged(pair) >= found.vanished_error
        if by_length or (found.proven_vanished >= least and at_once):
            if _may_have_expired(queue, pair, history):
                break
            if _was_deleted(view, pair):
                continue
            seen.append((pair, found))
            latest = place
    return tuple(sorted([*seen, *_earlier(view, queue, seen)], key=lambda each: -each[0][0].at.mono))


def _purges_by_totals(view: View, queue: Queue) -> tuple[Purge, ...]:
    """Return the same where no setting of a queue is known: totals rule out what else deletes messages.

    They count what expires, what a limit, a reject or a delivery limit deletes or dead-letters, and what is refused.

    Raises:
        SettingsUnknown: the totals may explain it, and the settings that could tell are not known.
    """
    if not may_have_lost(view, queue) or (queue.consumers and not view.links(queue)):
        return ()
    history, least = from_its_beginning(view, queue), view.limits(queue).queues.loss_least
    found = ledger(history, most=most_uncounted(view, queue))
    if found is None or found.proven_vanished < least:
        return ()
    pair, rise = max(((each, _vanished(each)) for each in pairwise(history)), key=lambda each: each[1])
    if _was_deleted(view, pair):
        return ()
    others = _removed_otherwise(view, queue, pair)
    # What leaves in several intervals does not leave at once.
    gradual = rise < _MOSTLY * found.vanished
    if others is None or gradual or found.proven_vanished - others < max(least, _MOSTLY * found.vanished):
        raise SettingsUnknown
    return ((pair, replace(found, vanished_error=found.vanished_error + others)),)


def _vanished(pair: Series[Queue]) -> int:
    before, after = levels(pair[0].value), levels(pair[1].value)
    return 0 if before is None or after is None else after.vanished - before.vanished


def _removed_otherwise(view: View, queue: Queue, pair: Series[Queue]) -> int | None:
    """Return how many messages of a queue the totals may explain around two readings; None where they are not known.

    What the ledgers of other queues lack in this time, the totals count for these.
    """
    begin, end = pair[0].at.mono - REFRESH, pair[1].at.mono + REFRESH
    known = counted(view)
    before = [seen for seen in known if seen.at.mono <= begin]
    after = [seen for seen in known if seen.at.mono >= end]
    if not before or not after:
        return None
    first, last = before[-1].value, after[0].value
    waited, waits = _unconfirmed(first), _unconfirmed(last)
    if waited is None or waits is None:
        return None
    others = (each for each in view.queues if each.key != queue.key)
    theirs = sum(_left_between(view, each, before[-1].at, after[0].at) for each in others)
    return max(0, _deleted(last) - _deleted(first) + max(0, waits - waited) - theirs)


def _left_between(view: View, queue: Queue, begin: Instant, end: Instant) -> int:
    """Return how many messages left a queue between two times and were not acknowledged."""
    known = [levels(seen.value) for seen in view.history(queue) if begin.mono <= seen.at.mono <= end.mono]
    gone = [each.discarded + each.vanished for each in known if each is not None]
    return max(0, gone[-1] - gone[0]) if gone else 0


def _unconfirmed(value: NativeTotals) -> int | None:
    """Return how many publishes are not confirmed: refused, or still waiting. The latter may also become fewer."""
    return None if value.to_confirm is None or value.confirmed is None else value.to_confirm - value.confirmed


def _deleted(value: NativeTotals) -> int:
    deleted = (getattr(each, reason) or 0 for each in value.types.values() for reason in DELETED_BY)
    return sum(deleted) + sum(value.dead_lettered.values())


def _earlier(view: View, queue: Queue, seen: list[Purge]) -> list[Purge]:
    """Return further purges of a queue that was purged, between readings too far apart to show it empty.

    Messages left it in a few intervals, as many in each as could be ready, and none in the others. Where messages leave
    all the time, they expire.
    """
    history = view.history(queue)
    beside = {at.mono for pair, _ in seen for at in _around(history, pair)}
    rises: list[Purge] = []
    others = 0
    for pair in pairwise(history):
        rise = _vanished(pair)
        # The length and the counters around a purge are refreshed at other times.
        if pair[0].at.mono in beside:
            continue
        if rise < max(view.limits(queue).queues.loss_least, _LIKE * min((_at_most(*each) for each in seen), default=0)):
            others += abs(rise)
        elif (
            _may_have_overflowed(view, queue, pair, seen)
            or _was_deleted(view, pair)
            or _may_have_expired(queue, pair, history)
        ):
            return []
        elif (found := ledger(pair)) is not None:
            rises.append((pair, found))
    at_once = others <= _BESIDES * sum(found.vanished for _, found in rises)
    return rises if seen and at_once else []


def _may_have_overflowed(view: View, queue: Queue, pair: Series[Queue], seen: list[Purge]) -> bool:
    """Return whether a queue may have reached its length limit between two readings, by what it held and what came.

    The size of its messages is that before a purge.
    """
    if not seen or not has_length_limit(queue):
        return False
    history, purged = view.history(queue), seen[0][0][0].value
    place = history.index(pair[0])
    around = history[max(place - 1, 0) : place + 3]
    most = max(each.value.messages_ready or 0 for each in pair) + max(0, delta(around, "publish"))
    share = level(purged) / max(1, purged.messages_ready or 0)
    return share * most >= view.limits(queue).publishers.overflow_relief


def _around(history: Series[Queue], pair: Series[Queue]) -> list[Instant]:
    """Return the readings with which the interval of a purge and those beside it begin."""
    place = history.index(pair[0])
    return [each.at for each in history[max(place - 1, 0) : place + 2]]


def _fell_by_half(pair: Series[Queue]) -> bool:
    return 2 * (pair[1].value.messages_ready or 0) <= (pair[0].value.messages_ready or 0)


def _was_deleted(view: View, pair: Series[Queue]) -> bool:
    """Return whether the queue was deleted and declared again between two readings."""
    before, after = pair
    found = deletions_of(view.presence(after.value.key))
    return any(before.at.mono < each.after.mono <= after.at.mono for each in found)


def purged_from(view: View, queue: Queue) -> int:
    """Return how many messages were purged from a queue, each time at once; 0 without a purge."""
    return sum(_number(*each) for each in purges(view, queue))


def _number(pair: Series[Queue], around: Ledger) -> int:
    """Return how many messages a purge took; by the balance if the length before it shows none."""
    return purged if (purged := _purged(pair)) > 0 else _at_most(pair, around)


def _may_have_expired(queue: Queue, pair: Series[Queue], history: Series[Queue]) -> bool:
    """Return whether the messages that are gone may have been as old as the message TTL of the queue."""
    ttl = queue.setting("message-ttl")
    if ttl is None:
        return False
    if not isinstance(ttl, int):
        return True
    before, after = pair
    young = [seen for seen in history if after.at.since(seen.at) < ttl / 1000 and seen.at.mono <= before.at.mono]
    return delta(tuple(young), "publish") < _YOUNG * (before.value.messages_ready or 0)


def _stays_full(view: View, pair: Series[Queue]) -> bool:
    """Return whether a queue was near its limit and still holds half: it dropped or refused messages meanwhile."""
    before, after = pair[0].value, pair[1].value
    return _is_full(view, before) and 2 * (after.messages_ready or 0) >= (before.messages_ready or 0)


def _is_full(view: View, queue: Queue) -> bool:
    return level(queue) >= view.limits(queue).publishers.overflow_relief


def _fell(view: View, pair: Series[Queue], history: Series[Queue]) -> Ledger | None:
    """Return the balance around a pair of readings in which the length of a full queue fell without deliveries.

    What a full queue drops makes room for a new message, so its length falls by deliveries, by expiry or by a purge.
    """
    before, after = pair[0].value, pair[1].value
    if not _is_full(view, before) or any(before.setting(name) != after.setting(name) for name in _LIMITS):
        return None
    place = history.index(pair[0])
    around = history[max(place - 1, 0) : place + 4]
    # Deliveries are counted some seconds after the length has fallen.
    if around[-1] == pair[1] or delta(around, *DELIVERED) > (1 - _YOUNG) * (before.messages_ready or 0):
        return None
    return ledger(around)


def _emptied(view: View, pair: Series[Queue], history: Series[Queue]) -> Ledger | None:
    """Return the balance around a pair of readings in which all ready messages vanished; None otherwise.

    The readings beside the pair are included: the counters and the length of the queue are refreshed at other times. A
    consumer that took all of it looks the same until its deliveries are counted. Those of a client that came and went
    may never be.
    """
    before, after = levels(pair[0].value), levels(pair[1].value)
    if before is None or after is None or before.ready == 0 or after.vanished <= before.vanished:
        return None
    place = history.index(pair[0])
    if _leaves_young(history[place - 1 : place + 1] if place else history[1:3]):
        return None
    unseen = most_uncounted(view, pair[1].value)
    if unseen is None and not any(seen.value.consumers for seen in pair) and served_by_visits(history):
        return None
    found = ledger(history[max(place - _BEFORE, 0) : place + _AFTER + 1], most=unseen)
    if found is None or found.vanished < 0.9 * before.ready - found.vanished_error:
        return None
    # What is ready now came after the purge.
    arrived = max(0, after.arrived - before.arrived)
    if after.ready - arrived > found.vanished_error:
        return None
    # More than was ready cannot leave at once: messages left all the time.
    return found if found.vanished <= 1.5 * (before.ready + arrived) else None


def _leaves_young(pair: Series[Queue]) -> bool:
    """Return whether messages left a queue between two readings, and all that are ready came since the first one.

    Then they leave all the time, before they are as old as an interval: they expire.
    """
    before, after = (levels(pair[0].value), levels(pair[1].value)) if len(pair) > 1 else (None, None)
    if before is None or after is None:
        return False
    return after.vanished > before.vanished and after.ready <= delta(pair, "publish")


def _purged(pair: Series[Queue]) -> int:
    """Return how many messages a purge between two readings took, by the length of the queue."""
    before, after = pair[0].value, pair[1].value
    stayed = max(0, (after.messages_ready or 0) - max(0, delta(pair, "publish")))
    return (before.messages_ready or 0) - stayed - delta(pair, *DELIVERED)


def _at_most(pair: Series[Queue], around: Ledger) -> int:
    """Return how many messages a purge can have taken, with those that arrived after the reading before it."""
    stayed_or_left = _purged(pair)
    return max(stayed_or_left, min(around.vanished, stayed_or_left + max(0, delta(pair, "publish"))))


def _apart(pairs: list[Series[Queue]]) -> list[Fact]:
    """Return the least and the most seconds between purges at regular intervals; [] if they are not regular.

    Each purge was between two readings, whose counters may be late.
    """
    least, most = [], []
    for (place, older), (later, newer) in combinations(enumerate(pairs), 2):
        least.append((newer[0].at.since(older[1].at) - REFRESH) / (later - place))
        most.append((newer[1].at.since(older[0].at) + REFRESH) / (later - place))
    return [max(0.0, *least), min(most)] if least and max(least) <= min(most) else []


def _finding(view: View, queue: Queue, found_each: tuple[Purge, ...]) -> Finding:
    (pair, found), first = found_each[0], found_each[-1][0]
    before, purged = pair[0].value, _number(pair, found)
    purged_in_all = sum(_at_most(each, around) for each, around in found_each)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING,
        subject=queue_subject(queue),
        since=first[0].at.iso(),
        over_since=pair[1].at.iso(),
        accounted=purged_in_all,
        facts={
            "queue": queue_facts(queue),
            "purged": purged,
            "times": len(found_each),
            "purged_in_all": purged_in_all if len(found_each) > 1 else purged,
            "first_at": first[1].at.iso(),
            "apart_seconds": _apart([each for each, _ in reversed(found_each)]),
            "error": found.vanished_error,
            "ready_before": before.messages_ready,
            "ready_after": pair[1].value.messages_ready,
            "delivered": found.delivered + found.auto,
            "within_seconds": span(pair),
            "at": pair[1].at.iso(),
            "has_limit": if_known(lambda: has_length_limit(queue), otherwise=False),
        },
        evidence=(
            Evidence(
                key="ready",
                value=before.messages_ready or 0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready"),
            ),
            Evidence(
                key="delivered",
                value=found.delivered + found.auto,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.deliver_get"),
            ),
            Evidence(
                key="purged",
                value=purged,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish", "message_stats.deliver_get", "messages_ready"),
                facts={"error": found.vanished_error},
            ),
        ),
        involved=involved_queue(queue, view.links(queue)),
    )

"""ttl-expiry-loss (C04): messages expire before a consumer gets to them; the queue looks empty and healthy.

A delay queue (dead-letter exchange, never consumed) does so by design. A queue that had a consumer is no delay queue,
whatever its settings: since the consumer left, its messages expire unprocessed. One that was never consumed may hold
what is recent on purpose, unless its TTL is next to nothing. Messages that consumers reject do not count as expired,
because the balance excludes delivered messages. The API does not show a message's own `expiration`; without a TTL of
the queue, messages that keep leaving a queue without a consumer can only expire by their own.

A message that a consumer holds does not expire, but one that is returned after its TTL expires at once
(`diagnosis.rules.consumers._shared.discarded`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Fact,
    Finding,
    Involved,
    QueueRef,
    Severity,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.hold_time import hold_time
from diagnosis.ledger import ledger, losing
from diagnosis.purpose import CONSUMED, federated_to, had_consumer, was_consumed
from diagnosis.routes import Place, dead_letters_to, is_delay
from diagnosis.rules.consumers._shared.comings import recent_clients
from diagnosis.rules.consumers._shared.discarded import Discarded, discarded, time_to_live
from diagnosis.rules.publishers._shared.overflow import has_length_limit
from diagnosis.rules.queues._shared.expiry_severity import NO_TIME, consumers_are_idle, expiry_severity, is_much
from diagnosis.rules.queues._shared.message_balance import (
    MessageBalance,
    balance_evidence,
    balance_facts,
    lasts,
    leaves_in_steps,
    losing_run,
)
from diagnosis.rules.queues._shared.queue import (
    certainty,
    involved_queue,
    is_private,
    operator_settings,
    queue_subject,
    queue_with_policy,
)
from diagnosis.rules.queues.delay_queue_cycle import way_back
from diagnosis.rules.queues.queue_purged import purges
from diagnosis.series import REFRESH, count, delta, last, span, stretch, without_consumers
from diagnosis.window import Series, Timestamped

NAME = "ttl-expiry-loss"

_MOST_STEPS = 0.6
"""Share of the steps in which messages leave a queue where they expire all the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What expires in one queue.

    Attributes:
        run: readings in which messages kept expiring.
        balance: its balance over the run.
        alone: readings in which no client took anything; empty if it has a consumer.
        worked: whether it has or had a consumer, or was polled.
        targets: queues that receive what expires; empty if it is lost, None if unknown.
    """

    run: Series[Queue]
    balance: MessageBalance
    alone: Series[Queue]
    worked: bool
    targets: frozenset[Place] | None


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that messages are published to and that may let them expire."""
    returned = {each.queue.key: each for each in discarded(view) if each.ttl is not None and each.returned is not None}
    for queue in view.queues:
        found = _before_delivery(view, queue)
        if found is not None:
            yield _finding(view, queue, found, returned.get(queue.key))
        elif queue.key in returned:
            yield _returned(view, returned[queue.key])


def _before_delivery(view: View, queue: Queue) -> Expiry | None:
    """Return what expires in a queue before it is delivered."""
    if queue.type == "stream" or is_private(queue):
        return None
    if not _may_expire(queue) or is_delay(view, queue) or _at_length_limit(view, queue):
        return None
    has_ttl = queue.setting("message-ttl") is not None
    found = losing_run(view, queue) if has_ttl else losing_run(view, queue, meanwhile=_is_unconsumed)
    if found is None:
        return None
    by_ttl = has_ttl and not _are_too_young(view, queue, found)
    # A backlog that drains, or none at all because what comes in step expires in step.
    in_steps = leaves_in_steps(view, queue, found[0], _MOST_STEPS) and not purges(view, queue)
    if not (by_ttl or in_steps or _drains_evenly(found[0])):
        return None
    return None if has_ttl and _was_purged(view, queue, found[1]) else _expiry(view, queue, *found)


def _are_too_young(view: View, queue: Queue, found: tuple[Series[Queue], MessageBalance]) -> bool:
    """Return whether most of what was lost was published after a time that is shorter ago than the TTL of the queue."""
    ttl, history, (run, balance) = queue.setting("message-ttl"), view.history(queue), found
    if not isinstance(ttl, int):
        return False
    old = [seen for seen in history if run[-1].at.since(seen.at) >= ttl / 1000]
    published = delta(history[: len(old) + 1], "publish")
    return 2 * ((history[0].value.messages_ready or 0) + published) < balance.lost


def _was_purged(view: View, queue: Queue, found: MessageBalance) -> bool:
    """Return whether nearly all that was lost left at once, long before its TTL; a few more prove no loss."""
    purged = purges(view, queue)
    rest = found.lost - sum(balance.vanished for _, balance in purged)
    return bool(purged) and rest < view.limits(queue).queues.loss_least


def _may_expire(queue: Queue) -> bool:
    """Return whether only expiry explains what leaves without a client: it has a TTL, or neither consumer nor limit."""
    if isinstance(queue.setting("message-ttl"), int):
        return True
    return queue.consumers == 0 and not has_length_limit(queue)


def _is_unconsumed(queue: Queue) -> bool:
    return queue.consumers == 0


def _drains_evenly(run: Series[Queue]) -> bool:
    """Return whether a backlog became smaller and was never emptied at once, as a purge does."""
    pairs = list(pairwise(seen.value.messages_ready or 0 for seen in run))
    return any(newer < older for older, newer in pairs) and all(newer >= older / 2 for older, newer in pairs)


def _expiry(view: View, queue: Queue, run: Series[Queue], found: MessageBalance) -> Expiry:
    history = view.history(queue)
    exchange = queue.setting("dead-letter-exchange")
    return Expiry(
        run=run,
        balance=found,
        alone=() if queue.consumers else stretch(history, _unattended),
        worked=was_consumed(queue) or had_consumer(history),
        targets=dead_letters_to(view, queue) if isinstance(exchange, str) else frozenset(),
    )


def _unattended(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    """Return whether the queue had no consumer and was not polled between two readings."""
    return without_consumers(older, newer) and not delta((older, newer), *CONSUMED)


def _at_length_limit(view: View, queue: Queue) -> bool:
    """Return whether the loss may be due to its length limit instead."""
    length = queue.setting("max-length")
    return isinstance(length, int) and (queue.messages_ready or 0) >= view.limits(queue).queues.full_share * length


def _severity(view: View, queue: Queue, expiry: Expiry) -> Severity:
    lost = expiry.targets is not None and not expiry.targets
    if queue.consumers:
        return expiry_severity(view, queue, expiry.run, expiry.balance, lost=lost, life=time_to_live(queue))
    limits, seconds = view.limits(queue).queues, lasts(view, expiry.run, expiry.balance)
    if not expiry.worked:
        certain = lost and _keeps_nothing(queue) and seconds >= limits.expiry_much_for
        return Severity.WARNING if certain else Severity.INFO
    return Severity.CRITICAL if lost and seconds >= limits.expiry_much_for else Severity.WARNING


def _keeps_nothing(queue: Queue) -> bool:
    """Return whether a message expires before anybody could look at it: what no consumer is ready for is lost."""
    ttl = time_to_live(queue)
    return ttl is not None and ttl <= NO_TIME


def _finding(view: View, queue: Queue, expiry: Expiry, returned: Discarded | None) -> Finding:
    limits, seconds = view.limits(queue).queues, lasts(view, expiry.run, expiry.balance)
    severity = _severity(view, queue, expiry)
    if returned is not None:
        severity = min(severity, _severity_of_returns(view, returned), key=lambda each: each.urgency)
    exchange = queue.setting("dead-letter-exchange")
    exchange = exchange if isinstance(exchange, str) else None
    until = limits.expiry_much_for if is_much(view, queue, expiry.balance) else limits.expiry_for
    history = view.history(queue)
    visits = not queue.consumers and _came_back(history)
    consumer_left = bool(expiry.alone) and len(expiry.alone) < len(history) and not visits
    since = expiry.alone[0] if consumer_left else expiry.run[0]
    return Finding(
        rule=NAME,
        severity=severity,
        subject=queue_subject(queue),
        since=since.at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            **balance_facts(expiry.balance),
            **_setting_facts(view, queue, idle=consumers_are_idle(expiry.run)),
            "returned": None if returned is None else _return_facts(view, returned),
            "worked": expiry.worked,
            "keeps_nothing": _keeps_nothing(queue),
            "consumer_left": consumer_left,
            "visits": visits,
            "without_consumer_seconds": span(expiry.alone),
            "consumed_total": count(queue.stats, *CONSUMED),
            "dead_letter_exchange": exchange,
            "targets": None if expiry.targets is None else sorted(name for _, name in expiry.targets),
            "lost_for_good": expiry.targets is not None and not expiry.targets,
            "warning_after_seconds": until,
        },
        accounted=expiry.balance.lost,
        certainty=certainty(severity, seconds, until),
        seen_seconds=seconds,
        evidence=tuple(_evidence(queue, expiry)),
        involved=_involved(view, queue, exchange, expiry.targets or ()),
    )


def _came_back(history: Series[Queue]) -> bool:
    """Return whether messages were consumed after a reading without a consumer, so that it comes now and then."""
    for place, seen in enumerate(history):
        if seen.value.consumers == 0:
            # The counters may still rise for what was consumed before.
            later = [each for each in history[place:] if each.at.since(seen.at) > REFRESH]
            return bool(later) and delta(tuple(later), *CONSUMED) > 0
    return False


def _setting_facts(view: View, queue: Queue, *, idle: bool = False) -> dict[str, Fact]:
    ttl, by_operator = queue.setting("message-ttl"), "message-ttl" in operator_settings(view, queue)
    milliseconds = ttl if isinstance(ttl, int) else None
    return {
        "ready": queue.messages_ready or 0,
        "consumers": queue.consumers or 0,
        "ttl_seconds": time_to_live(queue),
        "ttl_is_argument": "x-message-ttl" in queue.arguments and not by_operator,
        "ttl_by_operator": by_operator,
        "federated_to": federated_to(queue),
        "come_back": bool(way_back(view, queue)),
        "consumers_idle": idle,
        # A time in seconds may have been written where milliseconds are expected.
        "longer_ttl_milliseconds": None if milliseconds is None else milliseconds * (1000 if idle else 10),
    }


def _return_facts(view: View, each: Discarded) -> dict[str, Fact]:
    """Return facts about messages that expired on their return, or were rejected.

    Returns:
        `{"lost", "delivered", "over_seconds", "ended", "only", "clients", "held", "hold_seconds", "prefetch"}`;
        `held` is the most that consumers held; `hold_seconds` is how long they hold a message in the mean, None if they
        acknowledge none; `prefetch` is what each of them acknowledges within half of the TTL.
    """
    queue, hold, returned = each.queue, hold_time(each.history), each.returned
    pace = hold.ack_rate / max(1, queue.consumers or 0) if hold is not None else None
    return {
        "lost": each.lost,
        "delivered": each.found.delivered,
        "over_seconds": span(_run_of_returns(each)),
        "ended": returned is not None and returned.ended,
        "only": returned is not None and returned.only,
        "clients": list(recent_clients(view, queue)),
        "held": _most_held(each),
        "hold_seconds": hold.hold if hold is not None else None,
        "prefetch": max(1, int(pace * (each.ttl or 0.0) / 2)) if pace is not None else 1,
    }


def _most_held(each: Discarded) -> int:
    return max(seen.value.messages_unacked or 0 for seen in each.history)


def _run_of_returns(each: Discarded) -> Series[Queue]:
    return losing(each.history, lambda it: it.discarded, each.lost)


def _severity_of_returns(view: View, each: Discarded) -> Severity:
    """Return how bad it is that returned messages expire; it goes on if some did within the last minute."""
    limits = view.limits(each.queue)
    share = each.lost / max(each.found.delivered, 1)
    if share < limits.consumers.reject_share / 10:
        return Severity.INFO
    recent = ledger(last(each.history, limits.queues.expiry_much_for))
    ongoing = recent is not None and recent.discarded >= limits.queues.loss_least
    return Severity.CRITICAL if ongoing and share >= limits.consumers.reject_share else Severity.WARNING


def _returned(view: View, each: Discarded) -> Finding:
    """Return the finding about messages that expire when they are returned, and not before a delivery."""
    queue, run, links = each.queue, _run_of_returns(each), view.links(each.queue)
    return Finding(
        rule=NAME,
        severity=_severity_of_returns(view, each),
        subject=queue_subject(queue),
        since=run[0].at.iso(),
        facts={
            "queue": queue_with_policy(view, queue),
            **_setting_facts(view, queue),
            "returned": _return_facts(view, each),
            "lost": 0,
            "dead_letter_exchange": None,
            "targets": [],
            "lost_for_good": True,
        },
        certainty=Certainty.LIKELY,
        seen_seconds=span(run),
        evidence=(
            Evidence(
                key="returned",
                value=each.lost,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats", "messages_unacknowledged", "messages_ready"),
                facts={"error": each.found.discarded_error},
            ),
            Evidence(
                key="redelivered",
                value=each.found.redelivered,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.redeliver"),
            ),
            Evidence(
                key="held",
                value=_most_held(each),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_unacknowledged"),
            ),
            _ttl_evidence(each.ttl or 0.0),
        ),
        involved=involved_queue(queue, links),
    )


def _ttl_evidence(seconds: float) -> Evidence:
    return Evidence(
        key="ttl",
        value=seconds,
        unit=Unit.SECONDS,
        source=source("/api/queues", "arguments", "effective_policy_definition"),
    )


def _evidence(queue: Queue, expiry: Expiry) -> Iterator[Evidence]:
    yield from balance_evidence(expiry.balance)
    ttl = time_to_live(queue)
    if ttl is not None:
        yield _ttl_evidence(ttl)
    yield Evidence(
        key="ready",
        value=queue.messages_ready or 0,
        unit=Unit.MESSAGES,
        source=source("/api/queues", "messages_ready"),
    )
    if not queue.consumers:
        yield Evidence(
            key="consumers",
            value=0,
            source=source("/api/queues", "consumers", "message_stats.deliver", "message_stats.ack"),
        )


def _involved(view: View, queue: Queue, exchange: str | None, targets: Iterable[Place]) -> Involved:
    involved = involved_queue(queue, view.links(queue), [QueueRef(*place) for place in sorted(targets)])
    return replace(involved, exchanges=(ExchangeRef(queue.vhost, exchange),)) if exchange else involved

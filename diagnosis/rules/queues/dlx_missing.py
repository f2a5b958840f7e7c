"""dlx-missing (C06): dead letters cannot be routed, and are dropped silently.

The broker accepts a queue whose dead-letter exchange does not exist, and drops dead letters that it cannot route. A
quorum queue with at-least-once dead-lettering keeps them instead; once it does, that is dead-letters-held. A publish
that a full queue refuses is not a dead letter.

Without `dead-letter-routing-key` each dead letter keeps the key of its message. Where all bindings of a queue have
exact keys, the keys of its messages are known. Otherwise the counters decide: the queue has lost more messages than all
queues that are bound to the exchange received.
Source: https://www.rabbitmq.com/docs/dlx#routing, https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Fact,
    Finding,
    Inconclusive,
    Involved,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import Ledger, ledger, may_have_lost, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.purpose import DELIVERED
from diagnosis.routes import Place, dead_lettering, dead_letters_to, own_keys, targets
from diagnosis.rules.consumers._shared.returned import returned
from diagnosis.rules.publishers._shared.overflow import at_least_once, held_dead_letters, level, refuses_when_full
from diagnosis.rules.queues._shared.dead_letter_route import exchange_types, new_route
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import delta, last, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "dlx-missing"

_ARRIVE = 0.5
"""Most of the dead letters that may have arrived, by all messages that the bound queues received."""

_LOSE = ("message-ttl", "max-length", "max-length-bytes")
"""Settings by which a queue loses messages that no client took."""

ExchangeKey = tuple[str, str]
"""Virtual host and name."""


@dataclass(frozen=True, slots=True)
class UnroutedQueue:
    """A queue whose dead letters cannot be routed.

    Attributes:
        key: the routing key of its dead letters; None if each message keeps its own.
        own_keys: the keys of its messages, of which the exchange routes none; () if it routes no key at all.
        dropped: minimum number of dead letters dropped recently, over `seconds`.
        keeps: whether the queue would keep dead letters instead, because it must not lose them.
        bound: queues that are bound to the exchange, with other keys than the dead letters have.
        seen: seconds for which the queue has been seen with this setting.
        since: start of that time.
    """

    queue: Queue
    key: str | None
    own_keys: tuple[str, ...]
    dropped: int
    seconds: float
    keeps: bool
    seen: float
    since: str
    bound: tuple[str, ...] = ()


def evaluate(view: View) -> Iterator[RuleResult]:
    """Check where each queue's dead letters go; yield one finding per exchange."""
    types = exchange_types(view)
    found: dict[ExchangeKey, list[UnroutedQueue]] = {}
    unknown: list[str] = []
    for queue in dead_lettering(view):
        name = queue.setting("dead-letter-exchange")
        if not isinstance(name, str) or queue.type == "stream" or held_dead_letters(queue):
            continue
        key = queue.setting("dead-letter-routing-key")
        key = key if isinstance(key, str) else None
        if name == "" and key is None:
            continue
        reached = dead_letters_to(view, queue)
        if reached is None and name and (queue.vhost, name) in types:
            unknown.append(queue.name)
        elif not reached and (reached is not None or name):
            named = stretch(view.history(queue), _same_setting)
            if _read_since(view, named[0].at, "bindings" if (queue.vhost, name) in types else "exchanges"):
                found.setdefault((queue.vhost, name), []).append(_unrouted(view, queue, key, named))
        elif reached and key is None:
            unmatched = _unmatched(view, queue, reached)
            if unmatched is not None:
                found.setdefault((queue.vhost, name), []).append(unmatched)
    for exchange, unrouted in sorted(found.items()):
        finding = _finding(view, exchange, unrouted)
        if finding is not None:
            yield finding
    if unknown and view.bindings is None:
        names: Fact = sorted(unknown)[:MAX_NAMED]
        facts = {"queue_count": len(unknown), "names": names}
        yield Inconclusive(rule=NAME, reason="bindings_not_read", facts=facts)


def _same_setting(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    names = ("dead-letter-exchange", "dead-letter-routing-key")
    return all(older.value.setting(name) == newer.value.setting(name) for name in names)


def _read_since(view: View, moment: Instant, family: str) -> bool:
    """Return whether exchanges or bindings were read after this time; they are read less often than queues."""
    age = view.age(family)
    if moment == view.window.readings("queues")[0].at:
        return True
    return age is not None and view.now.since(moment) >= age


def _unrouted(view: View, queue: Queue, key: str | None, named: Series[Queue]) -> UnroutedQueue:
    sources = [each for each in per_view(view, _sources).get(queue.key, ()) if each.key != queue.key]
    # Arrivals of dead letters are known from the balance of other queues, which needs longer.
    recent = last(view.history(queue), view.thresholds.queues.dlx_for if sources else 2 * view.thresholds.interval)
    whole = balance(recent)
    exchange = str(queue.setting("dead-letter-exchange"))
    any_key = exchange and key is None and targets(view, queue.vhost, exchange, None)
    keeps = at_least_once(queue)
    # Rejected messages are dead letters too, so only the delay between the counters is subtracted.
    delay, missing = 0.0, 0
    if whole is not None and whole.seconds > 0 and not keeps:
        delay = max(view.limits(queue).queues.loss_skew * whole.published / whole.seconds, 2.0)
        missing = whole.missing + sum(_dead_letters(view, each, span(recent)) for each in sources)
        if refuses_when_full(queue) and any(level(seen.value) >= 1.0 for seen in recent):
            missing = min(missing, whole.rejected - delta(recent, "redeliver"))
    over, dropped = span(recent), missing if missing > delay else 0
    # A slow loss is proven over a longer time, for as long as the exchange has had the bindings of now.
    longer = last(view.history(queue), min(span(named), _unrouted_for(view, (queue.vhost, exchange))))
    found = None if keeps or may_settle_unseen(view, queue) else _balance(view, queue, longer)
    dead = 0 if found is None else _dead(queue, found)
    if not dropped and dead >= view.limits(queue).queues.loss_least:
        over, dropped = span(longer), dead
    return UnroutedQueue(
        queue=queue,
        key=key,
        own_keys=_shown(queue, own_keys(view, queue)) if any_key else (),
        dropped=dropped,
        seconds=over,
        keeps=keeps,
        seen=span(named),
        since=named[0].at.iso(),
    )


def _shown(queue: Queue, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys of its bindings; without one, its own name, which the default exchange uses."""
    return tuple(key for key in keys if key != queue.name) or keys


def _sources(view: View) -> dict[Place, list[Queue]]:
    """Return the queues whose dead letters reach one queue only, by that queue."""
    found: dict[Place, list[Queue]] = defaultdict(list)
    for queue in view.queues:
        reached = dead_letters_to(view, queue)
        if reached is not None and len(reached) == 1:
            found[next(iter(reached))].append(queue)
    return found


def _dead_letters(view: View, queue: Queue, seconds: float, passed: frozenset[Place] = frozenset()) -> int:
    """Return a minimum of the dead letters of a queue within some seconds.

    In a chain of retry queues all but the first get dead letters only, which no counter shows: those of the queues
    before it, except of those in `passed`, which would count a circle twice.
    """
    recent = last(view.history(queue), seconds)
    found, whole = ledger(recent), balance(recent)
    own = 0 if found is None else found.proven_discarded + found.proven_vanished
    passed |= {queue.key}
    before = [each for each in per_view(view, _sources).get(queue.key, ()) if each.key not in passed]
    if whole is None or not whole.seconds or not before or may_settle_unseen(view, queue):
        return own
    arrived = sum(_dead_letters(view, each, seconds, passed) for each in before)
    late = math.ceil(view.limits(queue).queues.loss_skew * (whole.published + arrived) / whole.seconds)
    return max(own, whole.missing + arrived - late)


def _unmatched(view: View, queue: Queue, reached: frozenset[Place]) -> UnroutedQueue | None:
    """Return a queue whose dead letters hardly arrive in the queues that are bound; None if they may have arrived."""
    if queue.key in reached or at_least_once(queue) or not may_have_lost(view, queue) or may_settle_unseen(view, queue):
        return None
    history = stretch(view.history(queue), _same_setting)
    found = _balance(view, queue, history)
    if found is None:
        return None
    dead = _dead(queue, found)
    received = [_received(view, view.queue(*place), span(history)) for place in sorted(reached)]
    known = [number for number in received if number is not None]
    if dead < view.limits(queue).queues.loss_least or len(known) < len(received) or sum(known) > _ARRIVE * dead:
        return None
    return UnroutedQueue(
        queue=queue,
        key=None,
        own_keys=(),
        dropped=dead - sum(known),
        seconds=span(history),
        keeps=False,
        seen=span(history),
        since=history[0].at.iso(),
        bound=tuple(name for _, name in sorted(reached)),
    )


def _balance(view: View, queue: Queue, history: Series[Queue]) -> Ledger | None:
    return ledger(history, may_hold(view, queue), returned=returned(view, queue, history))


def _dead(queue: Queue, found: Ledger) -> int:
    """Return a minimum of the dead letters of a queue, by its balance."""
    # Without a setting by which messages leave undelivered, a purge may have removed them: those are no dead letters.
    expires = any(queue.setting(name) is not None for name in _LOSE) and not refuses_when_full(queue)
    return found.proven_discarded + (found.proven_vanished if expires else 0)


def _unrouted_for(view: View, exchange: ExchangeKey) -> float:
    """Return for how many seconds at least an exchange has been as it is now: missing, or with the same bindings."""
    exists = any(each.key == exchange for each in view.exchanges)
    exchanges = stretch(
        view.window.readings("exchanges"),
        lambda older, _: any(each.key == exchange for each in older.value) == exists,
    )
    since = [exchanges[0].at] if exchanges else []
    if exists:
        own = {each for each in view.bindings or () if (each.vhost, each.source) == exchange}
        bindings = stretch(
            view.window.readings("bindings"),
            lambda older, _: {e for e in older.value.listed or () if (e.vhost, e.source) == exchange} == own,
        )
        since += [bindings[0].at] if bindings else []
    return min((view.now.since(each) for each in since), default=0.0)


def _received(view: View, queue: Queue | None, seconds: float) -> int | None:
    """Return the messages that a queue got in that time, in any way; None if it may have lost some unseen."""
    if queue is None or any(queue.setting(name) is not None for name in _LOSE):
        return None
    recent = last(view.history(queue), seconds)
    if not recent or None in (recent[0].value.messages_ready, queue.messages_ready):
        return None
    delivered = delta(recent, *DELIVERED) - delta(recent, "redeliver")
    return max(0, delivered + (queue.messages_ready or 0) - (recent[0].value.messages_ready or 0))


def _finding(view: View, exchange: ExchangeKey, unrouted: list[UnroutedQueue]) -> Finding | None:
    limits = view.thresholds.queues
    seen = max(each.seen for each in unrouted)
    if seen < view.thresholds.early:
        return None
    dropped = sum(each.dropped for each in unrouted)
    if dropped:
        severity = Severity.CRITICAL if seen >= limits.dlx_for else Severity.WARNING
    else:
        severity = Severity.WARNING if seen >= limits.dlx_for else Severity.INFO
    vhost, name = exchange
    return Finding(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="exchange", name=name, vhost=vhost),
        since=min(each.since for each in unrouted),
        facts={
            "vhost": vhost,
            "exchange": name,
            "routing_key": unrouted[0].key,
            **_new_route(view, unrouted[0]),
            "own_keys": list(unrouted[0].own_keys),
            "queue_count": len(unrouted),
            "queues": [{"name": each.queue.name, "routing_key": each.key} for each in unrouted[:MAX_NAMED]],
            "bound": sorted({name for each in unrouted for name in each.bound})[:MAX_NAMED],
            "bound_with_other_keys": _bound_with_other_keys(view, vhost, name, unrouted[0].key),
            "dropped": dropped,
            "dropped_over_seconds": max(each.seconds for each in unrouted),
            "keeps": all(each.keeps for each in unrouted),
            "warning_after_seconds": limits.dlx_for,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.CERTAIN,
        seen_seconds=seen,
        evidence=tuple(_evidence(name, dropped)),
        involved=Involved(queues=queue_refs(each.queue for each in unrouted), exchanges=(ExchangeRef(vhost, name),)),
    )


def _bound_with_other_keys(view: View, vhost: str, exchange: str, key: str | None) -> Fact:
    """Return the queues that an exchange leads to by other keys than the one of the dead letters."""
    reached = targets(view, vhost, exchange, None) if exchange and key is not None else None
    return [name for _, name in sorted(reached or ())][:MAX_NAMED]


def _new_route(view: View, unrouted: UnroutedQueue) -> dict[str, Fact]:
    route = new_route(view, unrouted.queue)
    return {**route, "new_key": unrouted.own_keys[0]} if unrouted.own_keys else route


def _evidence(name: str, dropped: int) -> Iterator[Evidence]:
    if name:
        yield Evidence(key="exchange", source=source("/api/exchanges") + source("/api/bindings"))
    else:
        yield Evidence(key="target_queue", source=source("/api/queues", "name"))
    yield Evidence(key="queues", source=source("/api/queues", "arguments", "effective_policy_definition"))
    if dropped:
        fields = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
        yield Evidence(key="dropped", value=dropped, unit=Unit.MESSAGES, source=fields)

"""dlx-missing (C06): dead letters cannot be routed, and are dropped silently.

The broker accepts a queue whose dead-letter exchange does not exist, and drops dead letters that it cannot route. A
quorum queue with at-least-once dead-lettering stores them instead, neither ready nor unacknowledged, until they can be
routed.
Source: https://www.rabbitmq.com/docs/dlx#routing, https://www.rabbitmq.com/docs/quorum-queues#dead-lettering
"""

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
from diagnosis.routes import targets
from diagnosis.rules.queues._shared.message_balance import balance
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import last, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "dlx-missing"

ExchangeKey = tuple[str, str]
"""Virtual host and name."""


@dataclass(frozen=True, slots=True)
class UnroutedQueue:
    """A queue whose dead letters cannot be routed.

    Attributes:
        key: the routing key of its dead letters; None if each message keeps its own.
        dropped: minimum number of recently dropped dead letters.
        waiting: dead letters that the queue stores because it must not lose them.
        waited: seconds for which some have been stored.
        seen: seconds for which the queue has been seen with this setting.
        since: start of that time.
    """

    queue: Queue
    key: str | None
    dropped: int
    waiting: int
    waited: float
    seen: float
    since: str


def evaluate(view: View) -> Iterator[RuleResult]:
    """Check where each queue's dead letters go; yield one finding per exchange."""
    types = {exchange.key: exchange.type for exchange in view.exchanges}
    found: dict[ExchangeKey, list[UnroutedQueue]] = {}
    unknown: list[str] = []
    for queue in view.queues:
        name = queue.setting("dead-letter-exchange")
        if not isinstance(name, str) or queue.type == "stream":
            continue
        key = queue.setting("dead-letter-routing-key")
        key = key if isinstance(key, str) else None
        if name == "" and key is None:
            continue
        reached = targets(view, queue.vhost, name, key)
        if reached is None and name and (queue.vhost, name) in types:
            unknown.append(queue.name)
        elif not reached and (reached is not None or name):
            named = stretch(view.history(queue), _same_setting)
            if _read_since(view, named[0].at, "bindings" if (queue.vhost, name) in types else "exchanges"):
                found.setdefault((queue.vhost, name), []).append(_unrouted(view, queue, key, named))
    for exchange, unrouted in sorted(found.items()):
        finding = _finding(view, exchange, unrouted, types.get(exchange))
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
    history = view.history(queue)
    whole = balance(last(history, 2 * view.thresholds.interval))
    # Rejected messages are dead letters too, so only the delay between the counters is subtracted.
    delay = 0.0
    if whole is not None and whole.seconds > 0:
        delay = max(view.limits(queue).queues.loss_skew * whole.published / whole.seconds, 2.0)
    dropped = whole.missing if whole is not None and whole.missing > delay else 0
    waiting = stretch(history, _both_waiting)
    return UnroutedQueue(
        queue=queue,
        key=key,
        dropped=dropped,
        waiting=queue.messages_dlx or 0,
        waited=span(waiting) if queue.messages_dlx else 0.0,
        seen=span(named),
        since=named[0].at.iso(),
    )


def _both_waiting(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return bool(older.value.messages_dlx and newer.value.messages_dlx)


def _finding(view: View, exchange: ExchangeKey, unrouted: list[UnroutedQueue], kind: str | None) -> Finding | None:
    limits = view.thresholds.queues
    seen = max(each.seen for each in unrouted)
    if seen < view.thresholds.early:
        return None
    dropped, waiting = sum(each.dropped for each in unrouted), sum(each.waiting for each in unrouted)
    waited = max(each.waited for each in unrouted)
    if dropped or waited >= limits.dlx_waiting_for:
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
            **_route_facts(name, unrouted[0], kind),
            "queue_count": len(unrouted),
            "queues": [{"name": each.queue.name, "routing_key": each.key} for each in unrouted[:MAX_NAMED]],
            "dropped": dropped,
            "dropped_over_seconds": 2 * view.thresholds.interval,
            "waiting": waiting,
            "waited_seconds": waited,
            "warning_after_seconds": limits.dlx_for,
        },
        certainty=Certainty.EARLY if severity is Severity.INFO else Certainty.CERTAIN,
        seen_seconds=seen,
        evidence=tuple(_evidence(name, dropped, waiting)),
        involved=Involved(queues=queue_refs(each.queue for each in unrouted), exchanges=(ExchangeRef(vhost, name),)),
    )


def _route_facts(name: str, first: UnroutedQueue, kind: str | None) -> dict[str, Fact]:
    """Return what is missing between an exchange and a queue for dead letters, and how to create it.

    Args:
        name: name of the exchange, "" for the default one.
        first: a queue that dead-letters there.
        kind: type of the exchange; None if it does not exist.

    Returns:
        `{"exchange_type", "routing_key", "new_type", "new_queue", "new_key"}`. The last three are what to create; the
        key of the binding is None if each message's own key is needed.
    """
    new_type = kind or ("direct" if first.key is not None else "fanout")
    catch_all = {"fanout": "", "topic": "#", "headers": ""}.get(new_type)
    return {
        "exchange_type": kind,
        "routing_key": first.key,
        "new_type": new_type,
        "new_queue": first.key if name == "" and first.key else f"{name or first.queue.name}.dead",
        "new_key": first.key if first.key is not None else catch_all,
    }


def _evidence(name: str, dropped: int, waiting: int) -> Iterator[Evidence]:
    if name:
        yield Evidence(key="exchange", source=source("/api/exchanges") + source("/api/bindings"))
    else:
        yield Evidence(key="target_queue", source=source("/api/queues", "name"))
    yield Evidence(key="queues", source=source("/api/queues", "arguments", "effective_policy_definition"))
    if dropped:
        fields = source("/api/queues", "message_stats.publish", "message_stats.ack", "messages")
        yield Evidence(key="dropped", value=dropped, unit=Unit.MESSAGES, source=fields)
    if waiting:
        yield Evidence(key="waiting", value=waiting, unit=Unit.MESSAGES, source=source("/api/queues", "messages_dlx"))

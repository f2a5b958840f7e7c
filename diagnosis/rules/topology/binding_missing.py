"""binding-missing (G02): a binding was removed, and its exchange has routed messages to nobody since.

The bindings are compared with those of ten minutes ago. A removed binding alone is not reported: queues come and go.
The exchange must drop more messages than before. Only the exchange that clients publish to counts messages. One that
gets them through bindings from another exchange has no counters, so its loss shows where the messages came in.

Where other queues still get the messages, nothing is dropped. There a queue with a consumer whose inflow stopped when
its binding went, while the exchange goes on, is cut off. One whose binding was replaced, or that nobody consumes, is
not.
Source: https://www.rabbitmq.com/docs/publishers#unroutable
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
    Involved,
    QueueRef,
    Severity,
    Subject,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.comings import recent_clients
from diagnosis.rules.publishers._shared.away_queues import exchanges_with_absences
from diagnosis.rules.queues._shared.queue import NAMED_BY_BROKER, is_private
from diagnosis.series import count, delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "binding-missing"

_ALTERNATE = "alternate-exchange"
_ROSE = 1.5
"""Least ratio of the messages dropped per second since a binding was removed to those before."""
_BEFORE, _AFTER = 45.0, 10.0
"""Seconds before and after the first reading without a binding in which the inflow of its queue must have stopped:
bindings are read every 30 s, and counters are some seconds old.
"""
_GOES_ON = 0.5
"""Least share of the former inflow of a queue that its exchange must still receive."""


@dataclass(frozen=True, slots=True)
class UnroutedMessages:
    """Messages that an exchange received, and those that it routed to nobody, within some seconds."""

    received: int
    dropped: int
    seconds: float


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every exchange that recently lost a binding."""
    removed = _removed(view)
    if not removed:
        return
    readings: Series[tuple[Exchange, ...]] = view.window.readings("exchanges")
    with_alternate = {policy.name for policy in view.policies if _ALTERNATE in policy.definition}
    lost_by = _lost_by(view, removed)
    for exchange in view.exchanges:
        bindings = lost_by.get(exchange.key)
        if not bindings or _ALTERNATE in exchange.arguments or exchange.policy in with_alternate:
            continue
        absent = per_view(view, exchanges_with_absences)
        # A queue that comes and goes with its consumer takes its binding along.
        bindings = [each for each in bindings if (each.value.vhost, each.value.source) not in absent]
        if not bindings or exchange.key in absent:
            continue
        since = max(each.at.mono for each in bindings)
        history = [(seen.at, each) for seen in readings for each in seen.value if each.key == exchange.key]
        after = [pair for pair in history if pair[0].mono >= since] or history[-1:]
        before = [pair for pair in history if pair[0].mono < since]
        since_then = [*before[-1:], *after]
        if len(since_then) >= 2:
            received = _gained(since_then, "publish_in")
            dropped = received - _gained(since_then, "publish_out")
            rose = _drop_rate(since_then) >= _ROSE * _drop_rate(before)
            if dropped >= view.thresholds.topology.binding_lost and rose and _drops_now(history):
                yield _finding(
                    view,
                    exchange,
                    bindings,
                    UnroutedMessages(received, dropped, since_then[-1][0].since(since_then[0][0])),
                )
                continue
        own = [each for each in removed.get(exchange.key, ()) if each in bindings]
        yield from _cut_off(view, exchange, own, history)


def _cut_off(
    view: View, exchange: Exchange, removed: list[Timestamped[Binding]], history: list[tuple[Instant, Exchange]]
) -> Iterator[Finding]:
    """Yield the queues that get no messages since their binding was removed, while the exchange receives them."""
    listed = [seen.value.listed for seen in view.window.readings("bindings") if seen.value.listed is not None]
    added = frozenset(view.bindings or ()) - frozenset(listed[0]) if listed else frozenset()
    for each in removed:
        binding = each.value
        replaced = any(
            new.destination == binding.destination
            or (new.source, new.routing_key) == (binding.source, binding.routing_key)
            for new in added
            if new.vhost == binding.vhost
        )
        queue = view.queue(binding.vhost, binding.destination) if binding.destination_type == "queue" else None
        if queue is None or not queue.consumers or replaced:
            continue
        readings = view.history(queue)
        quiet = stretch(readings, lambda older, newer: not delta((older, newer), "publish"))
        rate, seconds = _rate_until(view, queue, quiet[0]), span(quiet)
        if len(quiet) < 2 or not rate or not -_BEFORE <= quiet[0].at.since(each.at) <= _AFTER:
            continue
        meanwhile = [pair for pair in history if pair[0].mono >= quiet[0].at.mono]
        over = meanwhile[-1][0].since(meanwhile[0][0]) if meanwhile else 0.0
        if rate * seconds < view.thresholds.topology.binding_lost or not over:
            continue
        if _gained(meanwhile, "publish_in") >= _GOES_ON * rate * over:
            yield _starved(view, exchange, each, queue, rate, quiet)


def _rate_until(view: View, queue: Queue, end: Timestamped[Queue]) -> float:
    """Return messages per second that were published to a queue until a reading; 0 if that is not known."""
    readings = tuple(seen for seen in view.history(queue) if seen.at.mono <= end.at.mono)
    if span(readings):
        return delta(readings, "publish") / span(readings)
    # A queue that was declared just before has counted from its beginning.
    absent = [at for at, there in view.presence(queue.key) if there is None and at.mono < end.at.mono]
    return count(end.value.stats, "publish") / end.at.since(absent[-1]) if absent else 0.0


def _starved(
    view: View, exchange: Exchange, removed: Timestamped[Binding], queue: Queue, rate: float, quiet: Series[Queue]
) -> Finding:
    binding, late = removed.value, view.thresholds.publishers.unroutable_after
    early = span(quiet) < late
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else Severity.WARNING,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=quiet[0].at.iso(),
        facts={
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "source_type": exchange.type,
            "passes_to": None,
            "removed": [_binding_facts(binding)],
            "destination_exists": True,
            "for_one_client": False,
            "received": 0,
            "dropped": 0,
            "over_seconds": span(quiet),
            "warning_after_seconds": late,
            "starved": queue_facts(queue),
            "rate_before": rate,
            "clients": recent_clients(view, queue),
        },
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=span(quiet),
        evidence=(
            Evidence(key="removed", value=1, source=source("/api/bindings")),
            Evidence(
                key="inflow",
                value=0,
                unit=Unit.MESSAGES,
                source=source("/api/queues", "message_stats.publish"),
                facts={"rate_before": rate, "over_seconds": span(quiet)},
            ),
        ),
        involved=Involved(
            exchanges=(ExchangeRef(exchange.vhost, exchange.name),), queues=(QueueRef(queue.vhost, queue.name),)
        ),
    )


def _lost_by(
    view: View, removed: dict[tuple[str, str], list[Timestamped[Binding]]]
) -> dict[tuple[str, str], list[Timestamped[Binding]]]:
    """Exchange -> removed bindings of it and of the exchanges to which its messages go on."""
    found = {key: list(bindings) for key, bindings in removed.items()}
    sources: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for binding in view.bindings or ():
        if binding.destination_type == "exchange":
            sources.setdefault((binding.vhost, binding.destination), []).append((binding.vhost, binding.source))
    for key, bindings in removed.items():
        reached, waiting = {key}, [key]
        while waiting:
            above = [each for each in sources.get(waiting.pop(), ()) if each not in reached]
            reached.update(above)
            waiting += above
        for each in reached - {key}:
            found.setdefault(each, []).extend(bindings)
    return found


def _removed(view: View) -> dict[tuple[str, str], list[Timestamped[Binding]]]:
    """Exchange -> bindings that existed within the window and do not now, with the first reading without them."""
    readings: Series[Bindings] = view.window.readings("bindings")
    listed = [(seen.at, seen.value.listed) for seen in readings if seen.value.listed is not None]
    if len(listed) < 2 or view.bindings is None:
        return {}
    now = frozenset(listed[-1][1])
    found: dict[tuple[str, str], list[Timestamped[Binding]]] = {}
    known: set[Binding] = set()
    for place in range(len(listed) - 2, -1, -1):
        if listed[place][1] is listed[place + 1][1]:
            continue
        for binding in frozenset(listed[place][1]) - now - known:
            known.add(binding)
            found.setdefault((binding.vhost, binding.source), []).append(Timestamped(listed[place + 1][0], binding))
    return found


def _gained(span: list[tuple[Instant, Exchange]], counter: str) -> int:
    return count(span[-1][1].stats, counter) - count(span[0][1].stats, counter)


def _drop_rate(span: list[tuple[Instant, Exchange]]) -> float:
    """Return messages per second that were routed to nobody; 0 with fewer than two readings."""
    seconds = span[-1][0].since(span[0][0]) if span else 0.0
    return max(0, _gained(span, "publish_in") - _gained(span, "publish_out")) / seconds if seconds else 0.0


def _drops_now(history: list[tuple[Instant, Exchange]]) -> bool:
    """Whether messages were also dropped between the last two readings that differ."""
    changed = [pair for pair in history if pair[1].stats != history[-1][1].stats][-1:]
    last = [*changed, history[-1]]
    return len(last) == 2 and _gained(last, "publish_in") > _gained(last, "publish_out")


def _finding(
    view: View, exchange: Exchange, bindings: list[Timestamped[Binding]], unrouted: UnroutedMessages
) -> Finding:
    queues = {queue.key for queue in view.all_queues}
    removed = sorted(
        (each.value for each in bindings),
        key=lambda binding: ((binding.vhost, binding.destination) not in queues, binding.destination),
    )
    first, began = removed[0], min((each.at for each in bindings), key=lambda at: at.mono)
    late = view.now.since(began) >= view.thresholds.publishers.unroutable_after
    early = not late and all(_left_with_client(view, each) for each in removed)
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else Severity.WARNING,
        subject=Subject(kind="exchange", name=exchange.name, vhost=exchange.vhost),
        since=began.iso(),
        facts={
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "starved": None,
            "rate_before": None,
            "clients": [],
            "removed": [_binding_facts(binding) for binding in removed],
            "passes_to": first.source if first.source != exchange.name else None,
            "source_type": next(
                (each.type for each in view.exchanges if each.key == (first.vhost, first.source)), None
            ),
            "destination_exists": (first.vhost, first.destination) in queues or first.destination_type == "exchange",
            "for_one_client": first.destination_type == "queue" and first.destination.startswith(NAMED_BY_BROKER),
            "received": unrouted.received,
            "dropped": unrouted.dropped,
            "over_seconds": unrouted.seconds,
            "warning_after_seconds": view.thresholds.publishers.unroutable_after,
        },
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        evidence=(
            Evidence(key="removed", value=len(removed), source=source("/api/bindings")),
            Evidence(
                key="dropped",
                value=unrouted.dropped,
                source=source("/api/exchanges", "message_stats.publish_in", "message_stats.publish_out"),
            ),
        ),
        involved=Involved(
            exchanges=tuple(
                ExchangeRef(exchange.vhost, name)
                for name in dict.fromkeys((exchange.name, *(binding.source for binding in removed)))
            ),
            queues=tuple(
                QueueRef(binding.vhost, binding.destination)
                for binding in removed
                if binding.destination_type == "queue"
            ),
        ),
    )


def _left_with_client(view: View, binding: Binding) -> bool:
    """Return whether a binding led to a queue that goes with its last consumer or client, and comes back with it."""
    gone = view.presence((binding.vhost, binding.destination)) if binding.destination_type == "queue" else ()
    known = [queue for _, queue in gone if queue is not None]
    return bool(known) and is_private(known[-1])


def _binding_facts(binding: Binding) -> dict[str, Fact]:
    return {
        "source": binding.source,
        "destination_type": binding.destination_type,
        "destination": binding.destination,
        "routing_key": binding.routing_key,
    }

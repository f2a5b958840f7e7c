"""binding-missing (G02): a binding was removed, and its exchange has routed messages to nobody since.

The bindings are compared with those of ten minutes ago. A removed binding alone is not reported: queues come and go.
The exchange must drop more messages than before. Only the exchange that clients publish to counts messages. One that
gets them through bindings from another exchange has no counters, so its loss shows where the messages came in.

Where other queues still get the messages, nothing is dropped. There a queue with a consumer whose inflow stopped when
its binding, or one between exchanges before it, went, while the exchange goes on, is cut off. One whose binding was
replaced, or that nobody consumes, is not. A queue that was deleted and declared again is cut off in the same way.
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
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.rules.consumers._shared.comings import recent_clients
from diagnosis.rules.publishers._shared.away_queues import exchanges_with_absences
from diagnosis.rules.queues._shared.queue import NAMED_BY_BROKER, is_private
from diagnosis.rules.topology._shared.cut_off import CutOffQueue, cut_off_queues, reached
from diagnosis.series import count, span
from diagnosis.window import Series, Timestamped

NAME = "binding-missing"

_ALTERNATE = "alternate-exchange"
_ROSE = 1.5
"""Least ratio of the messages dropped per second since a binding was removed to those before."""


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
    lost_by, named = _lost_by(view, removed), set[Binding]()
    absent = per_view(view, exchanges_with_absences)
    for exchange in view.exchanges:
        bindings = lost_by.get(exchange.key)
        if not bindings or _diverts(exchange, with_alternate):
            continue
        # A queue that comes and goes with its consumer takes its binding along.
        bindings = [each for each in bindings if (each.value.vhost, each.value.source) not in absent]
        if not bindings or exchange.key in absent:
            continue
        since = max(each.at.mono for each in bindings)
        history = [
            (seen.at, each)
            for seen in readings
            for each in seen.value
            if each.key == exchange.key and _counted(each) == _counted(exchange)
        ]
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
                named |= {each.value for each in bindings}
    apart = absent | {each.key for each in view.exchanges if _diverts(each, with_alternate)}
    others = {
        key: [each for each in bindings if each.value not in named]
        for key, bindings in removed.items()
        if key not in apart
    }
    together: dict[str, list[CutOffQueue]] = {}
    for each in cut_off_queues(view, others):
        if each.exchange.key not in apart:
            together.setdefault(f"{each.queue.vhost}/{each.removed[0].value.source}", []).append(each)
    for queues in together.values():
        yield _starved(view, queues)


def _diverts(exchange: Exchange, with_alternate: set[str]) -> bool:
    """Return whether what an exchange cannot route goes to an alternate exchange."""
    return _ALTERNATE in exchange.arguments or exchange.policy in with_alternate


def _starved(view: View, found: list[CutOffQueue]) -> Finding:
    """Return the finding about queues that were cut off together, by bindings of one exchange."""
    first, late = found[0], view.thresholds.publishers.unroutable_after
    quiet = min((each.quiet for each in found), key=span)
    early, queue, own = span(quiet) < late, first.queue, first.removed[0].value
    removed = list(dict.fromkeys(gone.value for each in found for gone in each.removed))
    removed.sort(key=lambda each: each.destination_type == "queue")
    return Finding(
        rule=NAME,
        severity=Severity.INFO if early else Severity.WARNING,
        subject=Subject(kind="exchange", name=own.source, vhost=queue.vhost)
        if len(found) > 1
        else Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=quiet[0].at.iso(),
        facts={
            "vhost": queue.vhost,
            "exchange": first.exchange.name,
            "exchange_type": first.exchange.type,
            "source_type": _type(view, (queue.vhost, removed[0].source)),
            "passes_to": None,
            "removed": [_binding_facts(each) for each in removed],
            "destination_exists": True,
            "for_one_client": False,
            "received": 0,
            "dropped": 0,
            "over_seconds": span(quiet),
            "warning_after_seconds": late,
            "starved": queue_facts(queue),
            "starved_queues": [each.queue.name for each in found],
            "declared_again": _declared_again(view, queue.vhost, removed),
            "new_queues": [each.queue.name for each in found if each.is_new],
            "rate_before": max(each.rate for each in found),
            "clients": sorted({name for each in found for name in recent_clients(view, each.queue)}),
        },
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=span(quiet),
        evidence=(
            Evidence(key="removed", value=len(removed), source=source("/api/bindings")),
            *(
                Evidence(
                    key="inflow",
                    value=0,
                    unit=Unit.MESSAGES,
                    source=source("/api/queues", "message_stats.publish"),
                    facts={"rate_before": each.rate, "over_seconds": span(each.quiet), "queue_name": each.queue.name},
                )
                for each in found[:3]
            ),
        ),
        involved=Involved(
            exchanges=tuple(
                ExchangeRef(queue.vhost, name)
                for name in dict.fromkeys((first.exchange.name, *(each.source for each in removed)))
            ),
            queues=tuple(QueueRef(queue.vhost, each.queue.name) for each in found),
        ),
    )


def _type(view: View, exchange: tuple[str, str]) -> str | None:
    return next((each.type for each in view.exchanges if each.key == exchange), None)


def _declared_again(view: View, vhost: str, removed: list[Binding]) -> Fact:
    """Return the first exchange of removed bindings whose type changed; None if there is none."""
    names = {each.source for each in removed} | {
        each.destination for each in removed if each.destination_type == "exchange"
    }
    readings: Series[tuple[Exchange, ...]] = view.window.readings("exchanges")
    for exchange in view.exchanges:
        if exchange.vhost == vhost and exchange.name in names:
            types = [each.type for seen in readings for each in seen.value if each.key == exchange.key]
            before = [each for each in types if each != exchange.type]
            if before:
                return {"name": exchange.name, "type_before": before[-1], "type": exchange.type}
    return None


def _lost_by(
    view: View, removed: dict[tuple[str, str], list[Timestamped[Binding]]]
) -> dict[tuple[str, str], list[Timestamped[Binding]]]:
    """Exchange -> removed bindings of it and of the exchanges to which its messages go on."""
    found = {key: list(bindings) for key, bindings in removed.items()}
    sources: dict[tuple[str, str], list[tuple[str, str]]] = {}
    gone = [each.value for bindings in removed.values() for each in bindings]
    # An exchange may have lost the bindings that led to it, too.
    for binding in (*(view.bindings or ()), *gone):
        if binding.destination_type == "exchange":
            sources.setdefault((binding.vhost, binding.destination), []).append((binding.vhost, binding.source))
    for key, bindings in removed.items():
        for each in reached({key}, sources) - {key}:
            known = found.setdefault(each, [])
            known += [binding for binding in bindings if binding not in known]
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


def _counted(exchange: Exchange) -> bool:
    """Return whether the Prometheus endpoints count what it loses: before they are read, it has no counters."""
    return exchange.stats.drop_unroutable is not None


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
            "source_type": _type(view, (first.vhost, first.source)),
            "starved_queues": [],
            "new_queues": [],
            "declared_again": _declared_again(view, exchange.vhost, removed),
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

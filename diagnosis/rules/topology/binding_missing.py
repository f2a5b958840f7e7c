"""binding-missing (G02): a binding was removed, and its exchange has routed messages to nobody since.

The bindings are compared with those of ten minutes ago. A removed binding alone is not reported: queues come and go.
The exchange must drop more messages than before. Only the exchange that clients publish to counts messages. One that
gets them through bindings from another exchange has no counters, so its loss shows where the messages came in.
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
    source,
)
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.memo import per_view
from diagnosis.rules.publishers._shared.away_queues import exchanges_with_absences
from diagnosis.rules.queues._shared.queue import is_private
from diagnosis.series import count
from diagnosis.window import Series, Timestamped

NAME = "binding-missing"

_ALTERNATE = "alternate-exchange"
_ROSE = 1.5
"""Least ratio of the messages dropped per second since a binding was removed to those before."""
_NAMED_BY_BROKER = "amq.gen-"
"""Prefix of the queues that a client declares without a name; nobody can declare such a name again."""


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
        span = [*before[-1:], *after]
        if len(span) >= 2:
            received = _gained(span, "publish_in")
            dropped = received - _gained(span, "publish_out")
            rose = _drop_rate(span) >= _ROSE * _drop_rate(before)
            if dropped >= view.thresholds.topology.binding_lost and rose and _drops_now(history):
                yield _finding(
                    view, exchange, bindings, UnroutedMessages(received, dropped, span[-1][0].since(span[0][0]))
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
            "removed": [_binding_facts(binding) for binding in removed],
            "passes_to": first.source if first.source != exchange.name else None,
            "source_type": next(
                (each.type for each in view.exchanges if each.key == (first.vhost, first.source)), None
            ),
            "destination_exists": (first.vhost, first.destination) in queues or first.destination_type == "exchange",
            "for_one_client": first.destination_type == "queue" and first.destination.startswith(_NAMED_BY_BROKER),
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

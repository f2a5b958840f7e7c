"""binding-missing (G02): a binding went away, and its exchange passes messages to nobody since.

The bindings are compared with those of ten minutes ago. Alone, a binding that goes is no news: queues come and go.
Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections.abc import Iterator
from shlex import quote

from ackscope.clock import Instant
from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.series import count
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, some

NAME = "binding-missing"

_ALTERNATE = "alternate-exchange"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every exchange that lost a binding lately."""
    lost = _lost(view)
    if not lost:
        return
    readings: Series[tuple[Exchange, ...]] = view.window.readings("exchanges")
    with_alternate = {policy.name for policy in view.policies if _ALTERNATE in policy.definition}
    for exchange in view.exchanges:
        gone = lost.get(exchange.key)
        if not gone or _ALTERNATE in exchange.arguments or exchange.policy in with_alternate:
            continue
        since = max(each.at.mono for each in gone)
        mine = [(seen.at, each) for seen in readings for each in seen.value if each.key == exchange.key]
        after = [pair for pair in mine if pair[0].mono >= since] or mine[-1:]
        earlier = [pair for pair in mine if pair[0].mono < since][-1:]
        span = [*earlier, *after]
        if len(span) >= 2:
            taken = _gained(span, "publish_in")
            dropped = taken - _gained(span, "publish_out")
            if dropped >= view.thresholds.topology.binding_lost and _still(mine):
                yield _finding(view, exchange, gone, (taken, dropped, span[-1][0].since(span[0][0])))


def _lost(view: View) -> dict[tuple[str, str], list[Seen[Binding]]]:
    """Exchange -> bindings that were there within the window and are not now, with the first reading without them."""
    readings: Series[Bindings] = view.window.readings("bindings")
    listed = [(seen.at, seen.value.listed) for seen in readings if seen.value.listed is not None]
    if len(listed) < 2 or view.bindings is None:
        return {}
    now = frozenset(listed[-1][1])
    found: dict[tuple[str, str], list[Seen[Binding]]] = {}
    seen_gone: set[Binding] = set()
    for place in range(len(listed) - 2, -1, -1):
        if listed[place][1] is listed[place + 1][1]:
            continue
        for binding in frozenset(listed[place][1]) - now - seen_gone:
            seen_gone.add(binding)
            found.setdefault((binding.vhost, binding.source), []).append(Seen(listed[place + 1][0], binding))
    return found


def _gained(span: list[tuple[Instant, Exchange]], counter: str) -> int:
    return count(span[-1][1].stats, counter) - count(span[0][1].stats, counter)


def _still(mine: list[tuple[Instant, Exchange]]) -> bool:
    """Whether messages were lost between the last two readings that differ, too."""
    moved = [pair for pair in mine if pair[1].stats != mine[-1][1].stats][-1:]
    last = [*moved, mine[-1]]
    return len(last) == 2 and _gained(last, "publish_in") > _gained(last, "publish_out")


def _finding(view: View, exchange: Exchange, gone: list[Seen[Binding]], seen: tuple[int, int, float]) -> FindingReport:
    taken, dropped, seconds = seen
    there = {queue.key for queue in view.all_queues}
    ordered = sorted(
        gone, key=lambda each: ((each.value.vhost, each.value.destination) not in there, each.value.destination)
    )
    told = [
        f"{each.value.destination_type} {each.value.destination!r} by key {each.value.routing_key!r}"
        for each in ordered
    ]
    first = ordered[0].value
    alive = (first.vhost, first.destination) in there or first.destination_type == "exchange"
    again = (
        f"source={quote(first.source)} destination={quote(first.destination)} "
        f"destination_type={first.destination_type} routing_key={quote(first.routing_key)}"
    )
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="exchange", name=exchange.name, vhost=exchange.vhost),
        since=min(gone, key=lambda each: each.at.mono).at.iso(),
        summary=(
            f"exchange {exchange.name!r} ({exchange.vhost!r}) lost {amount(len(gone), 'binding')}, and passed "
            f"{dropped} of {amount(taken, 'message')} to nobody in {lasting(seconds)}"
        ),
        cause=(
            f"The binding to {some(told, 3)} was there and is gone"
            + ("." if alive else ", and what it led to as well.")
        ),
        evidence=(
            EvidenceReport(
                what="bindings that went", value=some(told, 5), expected="there, as before", source="/api/bindings"
            ),
            EvidenceReport(
                what="messages without a way",
                value=f"{dropped} of {taken} in {lasting(seconds)}",
                expected="0",
                source="/api/exchanges message_stats.publish_in, publish_out",
            ),
        ),
        next_steps=(
            (
                f"bind it again: rabbitmqadmin -V {quote(first.vhost)} declare binding {again}"
                if alive
                else f"declare the queue again and bind it: start its application, or import the definitions; {again}"
            ),
            f"see what is bound: rabbitmqctl list_bindings -p {quote(exchange.vhost)} | grep -F {quote(exchange.name)}",
            "find who unbound it: the log of a deployment; the broker's own log names deleted queues",
        ),
        runbook=runbook(NAME),
    )

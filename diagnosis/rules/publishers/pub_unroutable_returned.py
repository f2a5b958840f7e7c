"""pub-unroutable-returned (A02): messages reach no queue, and the broker returns them to their publisher.

They are lost only where the application ignores basic.return.
Source: https://www.rabbitmq.com/docs/publishers#unroutable
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

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
from ackscope.topology import Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.preconditions import unread
from diagnosis.rules.publishers._shared.lossy_exchanges import RETURNED, Routing, by_design
from diagnosis.rules.publishers._shared.native_publishers import (
    SESSIONS,
    NativePublisher,
    native_publishers,
    without_links,
)
from diagnosis.rules.publishers._shared.publishers import clients, first_seen, involved_publishers, listed
from diagnosis.rules.publishers._shared.unroutable import evaluate_unroutable
from diagnosis.rules.publishers._shared.unroutable_facts import NOT_EXAMINED, SUBSCRIPTION_TYPES
from diagnosis.series import delta, last, span
from diagnosis.unattributed import (
    TOTALS,
    counted,
    gained,
    names,
    own_probes_connected,
    suspect_evidence,
    suspect_facts,
    suspects,
    totals,
    with_suspects,
)

NAME = "pub-unroutable-returned"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for each exchange whose messages are returned, or released with AMQP 1.0."""
    yield from without_links(view, NAME)
    yield from _by_total(view)
    if view.counts_losses:
        # Exchanges do not count what AMQP 1.0 clients publish.
        if gained(counted(view), lambda each: each.unroutable):
            yield Inconclusive(rule=NAME, reason="no_client_lists")
    elif lacking := tuple(unread(NAME, view, ("channels",))):
        yield from lacking
        return
    found = tuple(evaluate_unroutable(view, NAME, RETURNED, worst=Severity.WARNING))
    yield from found
    known = {(each.subject.vhost, each.subject.name) for each in found if isinstance(each, Finding)}
    for key, group in _released(view).items():
        if key not in known and not by_design(view, group[0][0]):
            yield _finding(view, group)


def _by_total(view: View) -> Iterator[Finding]:
    """Report messages that AMQP 1.0 clients got back as released, where their total is all that the broker tells."""
    clients_left, series = suspects(view, None), totals(view)
    vhosts = {each.vhost or "/" for each in clients_left}
    if (view.fresh("sessions") and view.sessions) or len(vhosts) != 1 or own_probes_connected(view):
        return
    lost, seconds, limits = gained(series, lambda each: each.unroutable), span(series), view.thresholds.publishers
    if not lost or seconds < view.thresholds.early:
        return
    (vhost,) = vhosts
    late = seconds >= limits.unroutable_after and lost / seconds > limits.unroutable_rate
    yield Finding(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=series[0].at.iso(),
        facts={
            "clients": names(clients_left),
            "publishers": [],
            "vhost": vhost,
            "exchange": None,
            "exchange_unknown": "not_reported",
            **NOT_EXAMINED,
            "lost_rate": lost / seconds,
            "amqp10": True,
            "suspects": suspect_facts(clients_left),
        },
        evidence=(
            Evidence(
                key="released",
                value=lost,
                unit=Unit.MESSAGES,
                source=source(TOTALS, 'rabbitmq_global_messages_unroutable_returned_total{protocol="amqp10"}'),
            ),
            *suspect_evidence(clients_left),
        ),
        involved=with_suspects(Involved(), clients_left),
        certainty=Certainty.LIKELY if late else Certainty.EARLY,
        seen_seconds=seconds,
    )


def _released(view: View) -> dict[tuple[str, str], list[tuple[Exchange, NativePublisher]]]:
    """Return, by exchange, the AMQP 1.0 links none of whose messages can reach a queue, by the bindings."""
    read, exchanges = view.window.readings("bindings"), {each.key: each for each in view.exchanges}
    groups: dict[tuple[str, str], list[tuple[Exchange, NativePublisher]]] = defaultdict(list)
    for each in native_publishers(view):
        exchange = exchanges.get((each.connection.vhost or "/", each.exchange or ""))
        if not each.exchange or exchange is None or not read or each.reached(view) != frozenset():
            continue
        # A binding may be newer than the reading of all bindings, so only what was published before counts.
        before = [seen for seen in each.history if seen.at.mono <= read[-1].at.mono]
        if before and before[-1].value.stats.publish and delta(last(each.history, view.thresholds.early), "publish"):
            groups[exchange.key].append((exchange, each))
    return dict(sorted(groups.items()))


def _finding(view: View, group: list[tuple[Exchange, NativePublisher]]) -> Finding:
    limits, exchange = view.thresholds.publishers, group[0][0]
    found = [each.as_active() for _, each in group]
    seconds, rate = max(each.seconds for each in found), sum(each.rate for each in found)
    late = seconds >= limits.unroutable_after and rate > limits.unroutable_rate
    optional = exchange.type in SUBSCRIPTION_TYPES
    lost = sum(each.published for each in found)
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if late and not optional else Severity.INFO,
        subject=Subject(kind="exchange", name=exchange.name, vhost=exchange.vhost),
        since=first_seen(found),
        facts={
            "clients": clients(found),
            "publishers": listed(found),
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "exchange_unknown": None,
            "bindings": sum((each.vhost, each.source) == exchange.key for each in view.bindings or ()),
            **NOT_EXAMINED,
            "losers": list[Fact](clients(found)),
            "only_theirs": True,
            "received": lost,
            "lost": lost,
            "interval_seconds": seconds,
            "lost_rate": rate,
            "routing": Routing.PARTLY.value,
            "routed_before": False,
            "subscription_optional": optional,
            "warning_after_seconds": limits.unroutable_after,
            "amqp10": True,
            "suspects": [],
        },
        evidence=tuple(
            Evidence(
                key="publisher",
                value=each.published,
                unit=Unit.MESSAGES,
                source=source(SESSIONS, "incoming_links.target_address", "incoming_links.delivery_count")
                + source("/api/bindings"),
                facts={"publisher": each.facts(), "confirm": each.channel.confirm},
            )
            for each in found[:3]
        ),
        involved=replace(involved_publishers(found), exchanges=(ExchangeRef(exchange.vhost, exchange.name),)),
        certainty=Certainty.LIKELY if late or optional else Certainty.EARLY,
        seen_seconds=seconds,
    )

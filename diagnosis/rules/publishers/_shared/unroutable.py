"""Unroutable messages, dropped or returned: one finding for each exchange that loses them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Fact,
    Finding,
    Severity,
    Subject,
    Suppressed,
    Unit,
    source,
)
from diagnosis.contract import RuleResult, View
from diagnosis.rules.publishers._shared.lossy_exchanges import (
    DELAYED,
    LossyExchange,
    Routing,
    UnroutablePublishers,
    by_design,
    unroutable_publishers,
)
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    clients,
    first_seen,
    involved_publishers,
    listed,
)
from diagnosis.series import span

# Exchange types that need no subscriber; with the other types each routing key is meant for a queue.
_SUBSCRIPTION_TYPES = ("fanout", "topic", "headers")


def evaluate_unroutable(view: View, rule: str, counter: str, worst: Severity) -> Iterator[RuleResult]:
    """Yield one finding per exchange, or one per virtual host if the exchange is unknown.

    Args:
        view: the view that is being judged.
        rule: its name.
        counter: of channels, `drop_unroutable` or `return_unroutable`.
        worst: severity for an exchange that used to route and routes nothing now.
    """
    for group in unroutable_publishers(view, counter):
        if group.pending:
            continue
        if not group.exchanges:
            yield _unknown_exchange(view, rule, counter, group)
        for lossy in group.exchanges:
            reason = _harmless(view, lossy)
            if reason:
                yield Suppressed(rule=rule, subject=_subject(lossy), reason=reason)
            else:
                yield _finding(view, rule, counter, worst, group, lossy)


def _harmless(view: View, lossy: LossyExchange) -> str | None:
    if lossy.exchange.type == DELAYED:
        return "delayed_exchange"
    return "by_design" if by_design(view, lossy.exchange) else None


def _severity(view: View, worst: Severity, lossy: LossyExchange) -> Severity:
    """Return the severity by the exchange's earlier routing, its type, and the duration of the loss."""
    limits, seconds = view.thresholds.publishers, span(lossy.lossy)
    subscription = lossy.exchange.type in _SUBSCRIPTION_TYPES
    if lossy.routing is Routing.STOPPED:
        if seconds < limits.unroutable_after:
            return Severity.INFO
        return Severity.WARNING if subscription else worst
    tolerable = lossy.rate <= limits.unroutable_rate or lossy.lost < limits.unroutable_share * lossy.received
    if seconds < limits.unroutable_long or tolerable:
        return Severity.INFO
    if subscription:
        # Events without a subscriber are normally dropped; only a change is worth a warning.
        return Severity.WARNING if lossy.routed_before else Severity.INFO
    return Severity.WARNING


def _subject(lossy: LossyExchange) -> Subject:
    return Subject(kind="exchange", name=lossy.exchange.name, vhost=lossy.exchange.vhost)


def _finding(
    view: View, rule: str, counter: str, worst: Severity, group: UnroutablePublishers, lossy: LossyExchange
) -> Finding:
    exchange, limits, seconds = lossy.exchange, view.thresholds.publishers, span(lossy.lossy)
    severity = _severity(view, worst, lossy)
    stopped = lossy.routing is Routing.STOPPED
    warning_after = limits.unroutable_after if stopped else limits.unroutable_long
    optional = exchange.type in _SUBSCRIPTION_TYPES and not stopped and not lossy.routed_before
    early = severity is Severity.INFO and not optional and seconds < warning_after
    bindings = None
    if view.bindings is not None:
        bindings = sum(each.vhost == exchange.vhost and each.source == exchange.name for each in view.bindings)
    interval = span(lossy.recent)
    return Finding(
        rule=rule,
        severity=severity,
        subject=_subject(lossy),
        since=lossy.lossy[0].at.iso(),
        facts={
            **_publisher_facts(group.publishers),
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "exchange_unknown": None,
            "bindings": bindings,
            "received": lossy.received,
            "lost": lossy.lost,
            "interval_seconds": interval,
            "lost_rate": lossy.rate,
            "routing": lossy.routing.value,
            "routed_before": lossy.routed_before or stopped,
            "subscription_optional": optional,
            "warning_after_seconds": warning_after,
        },
        evidence=(
            Evidence(
                key="exchange_received",
                value=lossy.received,
                unit=Unit.MESSAGES,
                source=source("/api/exchanges", "message_stats.publish_in"),
            ),
            Evidence(
                key="exchange_routed",
                value=lossy.routed,
                unit=Unit.MESSAGES,
                source=source("/api/exchanges", "message_stats.publish_out"),
            ),
            *_of_publishers(counter, group.publishers),
        ),
        involved=replace(
            involved_publishers(group.publishers), exchanges=(ExchangeRef(exchange.vhost, exchange.name),)
        ),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _unknown_exchange(view: View, rule: str, counter: str, group: UnroutablePublishers) -> Finding:
    """Return the finding for known publishers whose exchange is unknown."""
    return Finding(
        rule=rule,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=group.vhost),
        since=first_seen(group.publishers),
        facts={
            **_publisher_facts(group.publishers),
            "vhost": group.vhost,
            "exchange": None,
            "exchange_unknown": "several" if view.fresh("exchanges") else "not_read",
            "lost_rate": sum(each.rate for each in group.publishers),
        },
        evidence=tuple(_of_publishers(counter, group.publishers)),
        involved=involved_publishers(group.publishers),
        seen_seconds=max(each.seconds for each in group.publishers),
    )


def _publisher_facts(found: Sequence[ActivePublisher]) -> dict[str, Fact]:
    return {"clients": clients(found), "publishers": listed(found)}


def _of_publishers(counter: str, publishers: Sequence[ActivePublisher]) -> Iterator[Evidence]:
    for each in sorted(publishers, key=lambda each: (-each.published, each.channel.name))[:3]:
        yield Evidence(
            key="publisher",
            value=each.published,
            unit=Unit.MESSAGES,
            source=source("/api/channels", f"message_stats.{counter}"),
            facts={"publisher": each.facts(), "confirm": each.channel.confirm},
        )

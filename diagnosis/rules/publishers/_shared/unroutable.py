"""Unroutable messages, dropped or returned: one finding for each exchange that loses them.

Some exchanges need no subscriber, so what they drop may be intended. It is not where something shows that a queue was
meant: the exchange used to route; a publisher loses all that it sends to a queue by its name; queues are bound, and no
message of any publisher matches; or a shovel took the messages from a queue, which has deleted them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from diagnosis.rules.cluster._shared.link_flow import SHOVEL
from diagnosis.rules.publishers._shared.lossy_exchanges import (
    DELAYED,
    SAME_RATE,
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
    increase,
    involved_publishers,
    listed,
)
from diagnosis.series import span
from diagnosis.thresholds.publishers import PublisherThresholds

SUBSCRIPTION_TYPES = ("fanout", "topic", "headers")
"""Exchange types that need no subscriber; with the other types each routing key is meant for a queue."""

_ALL = 0.9
"""Share of its messages that a publisher must lose so that none of them is meant for another route."""
_LONG_SEEN = 60.0
"""Least seconds of observation for a topic exchange: its subscribers may wait for rare keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one exchange loses.

    Attributes:
        publishers: those whose messages it may be.
        losers: clients that lose all that they publish.
        shovels: shovels whose messages it loses.
        bindings: bindings from the exchange; None if unknown.
    """

    lossy: LossyExchange
    publishers: tuple[ActivePublisher, ...]
    losers: tuple[str, ...]
    shovels: tuple[str, ...]
    bindings: int | None

    @property
    def meant(self) -> bool:
        """Whether something shows that the messages were meant for a queue, although none was ever reached."""
        if self.shovels:
            return True
        if not self.lossy.exchange.name:
            return bool(self.losers)
        return self.lossy.routing is Routing.NEVER and bool(self.bindings)

    def warning_after(self, limits: PublisherThresholds) -> float:
        """Return after how many seconds it is urgent."""
        if self.lossy.routing is Routing.STOPPED or self.shovels:
            return limits.unroutable_after
        if self.lossy.exchange.type == "topic" and self.meant:
            return max(limits.unroutable_long, _LONG_SEEN)
        return limits.unroutable_after if self.meant else limits.unroutable_long


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
                yield _finding(view, rule, counter, worst, _loss(view, group, lossy))


def _harmless(view: View, lossy: LossyExchange) -> str | None:
    if lossy.exchange.type == DELAYED:
        return "delayed_exchange"
    return "by_design" if by_design(view, lossy.exchange) else None


def _loss(view: View, group: UnroutablePublishers, lossy: LossyExchange) -> Loss:
    exchange = lossy.exchange
    found = tuple(each for each in group.publishers if not _goes_elsewhere(view, lossy, each))
    if not exchange.name:
        found = tuple(each for each in found if not any(each is other for other in group.elsewhere)) or found
    if len(group.exchanges) > 1:
        own = tuple(each for each in found if each.client.startswith(SHOVEL) and _is_similar(each, lossy))
        found = own or found
        # Leave out the publishers of other exchanges, if the rest accounts for the loss.
        near = tuple(each for each in found if each.rate <= (1 + SAME_RATE) * lossy.rate)
        same = tuple(each for each in near if _is_similar(each, lossy))
        found = same if len(same) == 1 else near or found
    losers = [each for each in found if each.published >= _ALL * increase(view, each.history, "publish")]
    bindings = None
    if view.bindings is not None:
        bindings = sum(each.vhost == exchange.vhost and each.source == exchange.name for each in view.bindings)
    return Loss(
        lossy=lossy,
        publishers=found,
        losers=tuple(clients(losers)),
        shovels=_shovels(view, lossy, losers),
        bindings=bindings,
    )


def _is_similar(publisher: ActivePublisher, lossy: LossyExchange) -> bool:
    return abs(publisher.rate - lossy.rate) <= SAME_RATE * lossy.rate


def _goes_elsewhere(view: View, lossy: LossyExchange, publisher: ActivePublisher) -> bool:
    """Return whether a publisher is a shovel to another exchange, by its settings."""
    if not publisher.client.startswith(SHOVEL):
        return False
    own = [link for link in view.bridges if SHOVEL + link.name == publisher.client]
    return any(link.target_exchange not in {lossy.exchange.name or None, None} for link in own)


def _shovels(view: View, lossy: LossyExchange, losers: Sequence[ActivePublisher]) -> tuple[str, ...]:
    """Return the shovels that publish to the exchange and lose all of it, by their clients and settings."""
    named = {each.client.removeprefix(SHOVEL) for each in losers if each.client.startswith(SHOVEL)}
    inner = any((each.channel.connection_name or "").startswith("<") for each in losers)
    target = lossy.exchange.name or None
    known = {link.name: link for link in view.bridges if link.kind == "shovel"}
    found = {name for name in named if name not in known or known[name].target_exchange in {target, None}}
    found |= {name for name, link in known.items() if inner and target and link.target_exchange == target}
    return tuple(sorted(found))


def _severity(view: View, worst: Severity, loss: Loss) -> Severity:
    """Return the severity by the exchange's earlier routing, its type, and the duration of the loss."""
    limits, lossy, seconds = view.thresholds.publishers, loss.lossy, span(loss.lossy.lossy)
    subscription = lossy.exchange.type in SUBSCRIPTION_TYPES
    if loss.shovels:
        return worst if seconds >= limits.unroutable_after else Severity.INFO
    if lossy.routing is Routing.STOPPED:
        if seconds < limits.unroutable_after:
            return Severity.INFO
        return Severity.WARNING if subscription else worst
    small = not loss.losers and lossy.lost < limits.unroutable_share * lossy.received
    if seconds < loss.warning_after(limits) or lossy.rate <= limits.unroutable_rate or small:
        return Severity.INFO
    if subscription and not loss.meant:
        # Events without a subscriber are normally dropped; only a change is worth a warning.
        return Severity.WARNING if lossy.routed_before else Severity.INFO
    return Severity.WARNING


def _subject(lossy: LossyExchange) -> Subject:
    return Subject(kind="exchange", name=lossy.exchange.name, vhost=lossy.exchange.vhost)


def _finding(view: View, rule: str, counter: str, worst: Severity, loss: Loss) -> Finding:
    lossy = loss.lossy
    exchange, seconds = lossy.exchange, span(lossy.lossy)
    severity = _severity(view, worst, loss)
    stopped = lossy.routing is Routing.STOPPED
    warning_after = loss.warning_after(view.thresholds.publishers)
    optional = exchange.type in SUBSCRIPTION_TYPES and not (stopped or lossy.routed_before or loss.meant)
    early = severity is Severity.INFO and not optional and seconds < warning_after
    interval = span(lossy.recent)
    return Finding(
        rule=rule,
        severity=severity,
        subject=_subject(lossy),
        since=lossy.lossy[0].at.iso(),
        facts={
            **_publisher_facts(loss.publishers),
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "exchange_unknown": None,
            "bindings": loss.bindings,
            "losers": list(loss.losers),
            "shovels": list(loss.shovels),
            "received": lossy.received,
            "lost": lossy.lost,
            "interval_seconds": interval,
            "lost_rate": lossy.rate,
            "routing": lossy.routing.value,
            "routed_before": lossy.routed_before or stopped,
            "subscription_optional": optional,
            "amqp10": False,
            "suspects": [],
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
            *_of_publishers(counter, loss.publishers),
        ),
        involved=replace(involved_publishers(loss.publishers), exchanges=(ExchangeRef(exchange.vhost, exchange.name),)),
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
            "amqp10": False,
            "suspects": [],
            "exchange_unknown": "several" if view.fresh("exchanges") else "not_read",
            "losers": [],
            "shovels": [],
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

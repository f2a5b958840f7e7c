"""Unroutable messages, dropped or returned: one finding for each exchange that loses them.

Some exchanges need no subscriber, so what they drop may be intended. It is not where something shows that a queue was
meant: the exchange used to route; a publisher loses all that it sends to a queue by its name; queues are bound, and no
message of any publisher matches; a shovel took the messages from a queue, which has deleted them; or an alternate
exchange should take what no binding matches, and loses it too; or a queue got until then what is lost now; or a
publisher gets all that it publishes back; or all queues of a direct or headers exchange last, and get the publisher's
other messages; or nothing is bound to the exchange, and one of nearly the same name has bindings and gets nothing, or a
client asks for a queue that does not exist.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ackscope.clock import iso
from ackscope.findings import (
    Certainty,
    Evidence,
    ExchangeRef,
    Fact,
    Finding,
    Severity,
    Suppressed,
    Unit,
    source,
)
from ackscope.snapshot import Queue
from ackscope.topology import Exchange
from diagnosis.contract import RuleResult, View
from diagnosis.routes import bound_exchanges
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.cluster._shared.link_flow import SHOVEL
from diagnosis.rules.publishers._shared.away_finding import away_finding
from diagnosis.rules.publishers._shared.away_queues import away_losses, queues_away
from diagnosis.rules.publishers._shared.bindings_from import bindings_from, dead_ends
from diagnosis.rules.publishers._shared.clients_without_queue import (
    ClientWithoutQueue,
    clients_without_queue,
    without_queue_facts,
)
from diagnosis.rules.publishers._shared.direct_replies import answers_arrive, may_be_direct_replies
from diagnosis.rules.publishers._shared.gone_queues import fed_until_gone, has_expired
from diagnosis.rules.publishers._shared.loss_duration import lost_seconds, seconds_at_this_rate
from diagnosis.rules.publishers._shared.lossy_exchanges import (
    DELAYED,
    DROPPED,
    RETURNED,
    SAME_RATE,
    LossyExchange,
    Routing,
    UnroutablePublishers,
    alternate_of,
    by_design,
    unroutable_publishers,
)
from diagnosis.rules.publishers._shared.moved_aside import moved_aside
from diagnosis.rules.publishers._shared.publishers import (
    ActivePublisher,
    clients,
    increase,
    involved_publishers,
    publish_rate,
    publish_rates,
    publishers,
    was_routed,
)
from diagnosis.rules.publishers._shared.similar_exchanges import similar_exchange, similar_facts
from diagnosis.rules.publishers._shared.starved_queues import QuietQueue, fed_by, fed_until, never_fed
from diagnosis.rules.publishers._shared.unlisted_losses import unlisted_losses
from diagnosis.rules.publishers._shared.unroutable_facts import (
    NOT_EXAMINED,
    SUBSCRIPTION_TYPES,
    alternate_facts,
    counted_evidence,
    exchange_subject,
    publisher_evidence,
    publisher_facts,
    routed_evidence,
    unknown_exchange,
)
from diagnosis.rules.publishers._shared.work_queues import temporary_queues, work_queues
from diagnosis.rules.queues._shared.queue import queue_refs
from diagnosis.series import span
from diagnosis.thresholds.publishers import PublisherThresholds

_ALL = 0.9
"""Share of its messages that a publisher must lose so that none of them is meant for another route."""
_EXPIRED_AFTER = 15.0
"""Seconds of a loss after which it is urgent if the queue expired: its consumer was away for longer than is allowed."""
_RENAMED = 60.0
"""Seconds before a loss within which the consumers of a queue appear if it replaces the one that is gone."""
_LONG_SEEN = 60.0
"""Least seconds of observation for a topic exchange: its subscribers may wait for rare keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one exchange loses.

    Attributes:
        publishers: those whose messages it may be; empty if only clients that were not listed can be.
        losers: clients that lose all that they publish, on `losing` of their `publishing` channels.
        never_routed: none of the messages of these ever reached a queue, as far as their channels count.
        lost_by_others: messages a second that other publishers may lose.
        shovels: shovels whose messages it loses.
        bindings: bindings from the exchange; None if unknown.
        dead_ends: the exchanges that its bindings lead to, if no queue is behind any of them.
        alternate: its alternate exchange; None without one.
        fed: its queues that got messages until the loss began, and none since.
        work_queues: its queues, if they show that all of its messages are work and it loses a part.
        similar: an exchange of nearly the same name that has the bindings and gets nothing.
        clients_without_queue: clients that ask for a queue that does not exist, which was probably bound to it.
        moved_aside: queues of those that lose all; the exchange is called after them.
        returned: its publishers set `mandatory` and get the messages back.
        seconds: for how long at least it has lost messages: as observed, or by the counters of its publishers.
        gone: queues that got messages until the loss began, and are gone.
        expired: the broker deleted one of these, which outlasts its clients, because it had no consumer for too long.
        lost_seconds: what its publishers took to publish what they have lost since they opened their channels; 0 if
            that is a small part of all that they published, or they do not lose all now.
        client_rate: messages a second that the publishers lose, if others must lose the rest; else None.
    """

    lossy: LossyExchange
    publishers: tuple[ActivePublisher, ...]
    losers: tuple[str, ...]
    losing: int
    publishing: int
    never_routed: bool
    lost_by_others: float
    shovels: tuple[str, ...]
    bindings: int | None
    dead_ends: tuple[str, ...]
    alternate: str | None
    fed: tuple[QuietQueue, ...]
    work_queues: Sequence[str]
    similar: str | None
    clients_without_queue: tuple[ClientWithoutQueue, ...]
    moved_aside: tuple[str, ...]
    returned: bool
    seconds: float
    gone: tuple[Queue, ...]
    expired: bool
    lost_seconds: float
    client_rate: float | None

    @property
    def routing(self) -> Routing:
        """How the exchange treats the messages; one that routed some while it lost others has not stopped at once."""
        return Routing.PARTLY if self.lossy.pauses else self.lossy.routing

    @property
    def routed_before(self) -> bool:
        """Whether the exchange routed messages before, and queues got some of these publishers."""
        unbound = self.bindings == 0 and self.lossy.routed > 0
        return (self.lossy.routed_before or unbound or self.routing is Routing.STOPPED) and not self.never_routed

    @property
    def only_theirs(self) -> bool:
        """Whether it loses all messages of these clients, and routes those of others."""
        explained = self.lost_by_others <= SAME_RATE * self.lossy.rate
        return self.routing is Routing.PARTLY and bool(self.losers) and explained

    @property
    def meant(self) -> bool:
        """Whether something shows that the messages were meant for a queue, although none was ever reached."""
        if self.shovels or self.alternate is not None or self.fed or (self.returned and self.losers):
            return True
        if self.work_queues or self.similar is not None or self.clients_without_queue or self.moved_aside:
            return True
        if not self.lossy.exchange.name:
            return bool(self.losers)
        # Events to which nobody has subscribed yet may have keys of their own beside others that are bound.
        own = bool(self.losers) and self.lossy.exchange.type not in ("topic", "fanout")
        return bool(self.bindings) and (self.routing is Routing.NEVER or (self.routing is Routing.PARTLY and own))

    def warning_after(self, limits: PublisherThresholds) -> float:
        """Return after how many seconds it is urgent."""
        if self.expired:
            return min(limits.unroutable_after, _EXPIRED_AFTER)
        if self.routing is Routing.STOPPED or self.shovels or self.alternate is not None or self.fed:
            return limits.unroutable_after
        if self.moved_aside:
            return max(limits.unroutable_after, _LONG_SEEN)
        named = self.similar is not None or self.clients_without_queue
        if self.lossy.exchange.type == "topic" and self.meant and not named:
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
    away = {each.exchange.key: each for each in away_losses(view, counter)}
    for each in away.values():
        reason = _harmless(view, each.exchange)
        if reason:
            yield Suppressed(rule=rule, subject=exchange_subject(each.exchange), reason=reason)
        else:
            yield away_finding(view, rule, counter, each)
    explained = {publisher.channel.name for each in away.values() for publisher in each.publishers}
    for group in (unlisted_losses if view.counts_losses else unroutable_publishers)(view, counter):
        others = [each for each in group.exchanges if each.exchange.key not in away]
        if group.pending or (not others and explained >= {each.channel.name for each in group.publishers}):
            continue
        if not group.exchanges:
            yield unknown_exchange(view, rule, counter, group)
        for lossy in others:
            reason = _harmless(view, lossy.exchange)
            if reason:
                yield Suppressed(rule=rule, subject=exchange_subject(lossy.exchange), reason=reason)
                continue
            loss = _loss(view, counter, group, lossy)
            if _may_be_direct_replies(view, loss) and answers_arrive(view, lossy, loss.publishers):
                subject = exchange_subject(lossy.exchange)
                yield Suppressed(rule=rule, subject=subject, reason="direct_replies", facts={"rate": lossy.rate})
                continue
            yield _finding(view, rule, counter, worst, loss)


def _harmless(view: View, exchange: Exchange) -> str | None:
    if exchange.type == DELAYED:
        return "delayed_exchange"
    return "by_design" if by_design(view, exchange) else None


def _loss(view: View, counter: str, group: UnroutablePublishers, lossy: LossyExchange) -> Loss:
    exchange = lossy.exchange
    rows = lossy.counted
    found = tuple(each for each in group.publishers if not _goes_elsewhere(view, lossy, each))
    if rows is not None:
        found = tuple(each for each in found if each.channel.name not in rows.elsewhere)
    if not exchange.name:
        found = tuple(each for each in found if not any(each is other for other in group.elsewhere)) or found
    if rows is not None and rows.whole:
        found = rows.publishers
    elif len(group.exchanges) > 1:
        own = tuple(each for each in found if each.client.startswith(SHOVEL) and _is_similar(each, lossy))
        found = own or found
        if _more_than_listed(group):
            # What their own exchange explains is lost there; unlisted clients published the rest.
            elsewhere = {each.channel.name for each in group.elsewhere}
            found = tuple(each for each in found if each.channel.name not in elsewhere or _is_similar(each, lossy))
        # Leave out the publishers of other exchanges, if the rest accounts for the loss.
        near = tuple(each for each in found if each.rate <= (1 + SAME_RATE) * lossy.rate)
        same = tuple(each for each in near if _is_similar(each, lossy))
        # Of two that lose alike, only one may publish as much as the exchange receives.
        whole = tuple(each for each in same if _publishes_all(view, each, lossy))
        same = whole if len(whole) == 1 else same
        found = same or near or found
    losers = [each for each in found if each.published >= _ALL * increase(view, each.history, "publish")]
    names = clients(losers)
    fed, counted = fed_until(view, exchange, lossy.lossy), fed_by(view, exchange, [each.channel for each in losers])
    same_client = [each for each in publishers(view) if each.client in names]
    bindings = bindings_from(view, exchange)
    gone, theirs = tuple(fed_until_gone(view, lossy, found)), sum(each.rate for each in found)
    # What publishers have lost may be of another exchange, unless all that lose here are known.
    known = len(group.exchanges) == 1 or (rows is not None and rows.whole)
    return Loss(
        gone=gone,
        expired=any(has_expired(view, each) for each in gone),
        lost_seconds=lost_seconds(view, counter, losers) if len(losers) == len(found) else 0.0,
        client_rate=theirs
        if found and theirs < (1 - SAME_RATE) * lossy.rate and publish_rates(view, found) < lossy.rate
        else None,
        lossy=lossy,
        publishers=found,
        losers=tuple(names),
        losing=len(losers),
        publishing=sum(each.channel.vhost == exchange.vhost for each in same_client),
        never_routed=bool(losers) and not any(map(was_routed, losers)),
        lost_by_others=max(0.0, lossy.rate - sum(each.rate for each in losers)),
        shovels=_shovels(view, lossy, losers),
        bindings=None if bindings is None else len(bindings),
        dead_ends=dead_ends(view, bindings or []),
        alternate=alternate_of(view, exchange),
        fed=fed or counted,
        work_queues=work_queues(view, exchange, found)
        if counter == DROPPED and lossy.routing is Routing.PARTLY
        else (),
        similar=similar_exchange(view, exchange),
        clients_without_queue=clients_without_queue(view, exchange, None if bindings is None else len(bindings)),
        moved_aside=moved_aside(view, exchange, names) if exchange.name and not bindings else (),
        returned=counter == RETURNED,
        seconds=max(span(lossy.lossy), seconds_at_this_rate(view, counter, lossy, found, counted) if known else 0.0),
    )


def _also_consume(view: View, loss: Loss) -> bool:
    """Return whether those that lose all they publish consume on the same channel: their messages may be replies."""
    losing = [each for each in loss.publishers if each.client in loss.losers]
    return bool(losing) and all(view.queues_served(each.channel.name) for each in losing)


def _may_be_direct_replies(view: View, loss: Loss) -> bool:
    """Return whether the messages may be answers over direct reply-to, and nothing shows another way."""
    if loss.lossy.exchange.name or loss.returned or loss.shovels or loss.gone:
        return False
    return may_be_direct_replies(view, loss.lossy, loss.publishers)


def _is_similar(publisher: ActivePublisher, lossy: LossyExchange) -> bool:
    return abs(publisher.rate - lossy.rate) <= SAME_RATE * lossy.rate


def _more_than_listed(group: UnroutablePublishers) -> bool:
    """Return whether exchanges lose more than all listed publishers do."""
    return sum(each.rate for each in group.exchanges) > (1 + SAME_RATE) * sum(each.rate for each in group.publishers)


def _publishes_all(view: View, publisher: ActivePublisher, lossy: LossyExchange) -> bool:
    """Return whether a publisher publishes as many messages as an exchange receives."""
    received = lossy.received / max(span(lossy.recent), 1.0)
    published = publish_rate(view, publisher)
    return abs(published - received) <= SAME_RATE * max(received, published)


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
    limits, lossy, seconds = view.thresholds.publishers, loss.lossy, loss.seconds
    subscription = lossy.exchange.type in SUBSCRIPTION_TYPES
    if loss.shovels or loss.alternate is not None:
        return worst if seconds >= limits.unroutable_after and lossy.rate > limits.unroutable_rate else Severity.INFO
    if loss.routing is Routing.STOPPED:
        if seconds < limits.unroutable_after:
            return Severity.INFO
        return Severity.WARNING if subscription else worst
    small = not loss.losers and not loss.expired and lossy.lost < limits.unroutable_share * lossy.received
    lasts = max(seconds, loss.lost_seconds) >= loss.warning_after(limits)
    if not lasts or lossy.rate <= limits.unroutable_rate or small:
        return Severity.INFO
    if subscription and not loss.meant:
        # Events without a subscriber are normally dropped; only a change is worth a warning.
        return Severity.WARNING if loss.routed_before else Severity.INFO
    return Severity.WARNING


def _finding(view: View, rule: str, counter: str, worst: Severity, loss: Loss) -> Finding:
    lossy = loss.lossy
    exchange, seconds = lossy.exchange, loss.seconds
    direct = _may_be_direct_replies(view, loss)
    severity = Severity.INFO if direct else _severity(view, worst, loss)
    stopped = loss.routing is Routing.STOPPED
    warning_after = loss.warning_after(view.thresholds.publishers)
    optional = exchange.type in SUBSCRIPTION_TYPES and not (stopped or loss.routed_before or loss.meant)
    lasts = max(seconds, loss.lost_seconds) >= warning_after
    early = severity is Severity.INFO and not optional and not direct and not lasts
    interval, first_end = span(lossy.recent), (exchange.vhost, *loss.dead_ends[:1])
    return Finding(
        rule=rule,
        severity=severity,
        subject=exchange_subject(exchange),
        since=iso(min(lossy.lossy[0].at.wall, view.now.wall - seconds)),
        facts={
            **NOT_EXAMINED,
            **publisher_facts(loss.publishers),
            "clients_unknown": view.counts_losses,
            "vhost": exchange.vhost,
            "exchange": exchange.name,
            "exchange_type": exchange.type,
            "exchange_unknown": None,
            "bindings": loss.bindings,
            "dead_ends": list(loss.dead_ends),
            "dead_end_type": next((each.type for each in view.exchanges if each.key == first_end), None),
            "answers": not exchange.name and _also_consume(view, loss),
            "direct_replies": direct,
            "gone": [each.name for each in loss.gone],
            "client_rate": loss.client_rate,
            "fed": [each.queue.name for each in loss.fed],
            "fed_rate": sum(each.rate for each in loss.fed),
            "unfed": list(_unfed(view, loss)),
            "also_away": list[Fact](queues_away(view, exchange)),
            "temporary": list[Fact](temporary_queues(view, exchange)),
            "work_queues": list(loss.work_queues),
            "moved_aside": list[Fact](loss.moved_aside),
            **alternate_facts(view, exchange, loss.alternate),
            **similar_facts(exchange, loss.similar),
            **without_queue_facts(view, exchange, loss.bindings, loss.clients_without_queue),
            "losers": list(loss.losers),
            "losing_channels": loss.losing,
            "publishing_channels": loss.publishing,
            "only_theirs": loss.only_theirs,
            "never_routed": loss.never_routed,
            "shovels": list(loss.shovels),
            "received": lossy.received,
            "lost": lossy.lost,
            "interval_seconds": interval,
            "lost_rate": lossy.rate,
            "of_clients": _of_clients(view, loss),
            "routing": loss.routing.value,
            "routed_before": loss.routed_before or stopped,
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
            *routed_evidence(lossy),
            *counted_evidence(counter, lossy),
            *publisher_evidence(counter, loss.publishers),
        ),
        involved=replace(
            involved_publishers(loss.publishers),
            exchanges=(ExchangeRef(exchange.vhost, exchange.name),),
            queues=queue_refs(each.queue for each in loss.fed),
        ),
        certainty=Certainty.EARLY if early else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _of_clients(view: View, loss: Loss) -> dict[str, Fact] | None:
    """Return what the clients of a loss on the default exchange lose of all that they publish; None if not known.

    Every client that publishes to a queue by its name uses that exchange, so what it receives in all says little.

    Returns:
        `{"lost", "published"}`.
    """
    theirs = sum(each.rate for each in loss.publishers)
    if loss.lossy.exchange.name or loss.routing is not Routing.PARTLY or theirs < (1 - SAME_RATE) * loss.lossy.rate:
        return None
    lost = sum(each.published for each in loss.publishers)
    published = sum(increase(view, each.history, "publish") for each in loss.publishers)
    return {"lost": lost, "published": published} if 0 < lost <= published else None


def _unfed(view: View, loss: Loss) -> Iterator[str]:
    """Yield the queues that only their name reaches, and that wait for a first message while that of others is lost."""
    exchange = loss.lossy.exchange
    if exchange.name or loss.shovels or loss.gone or view.bindings is None:
        return
    for queue in never_fed(view, exchange.vhost):
        if not bound_exchanges(view, queue) and not _waited_before(view, queue, loss):
            yield queue.name


def _waited_before(view: View, queue: Queue, loss: Loss) -> bool:
    """Return whether all consumers of a queue were there long before the loss began.

    While messages were routed elsewhere, they waited for something else.
    """
    if not loss.losers or loss.never_routed:
        return False
    ages = [age_seconds(view, link.connection) for link in view.links(queue)]
    return bool(ages) and min(ages) > max(loss.seconds, loss.lost_seconds) + _RENAMED

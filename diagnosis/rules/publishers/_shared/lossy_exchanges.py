"""Finds unroutable messages: channel counters show who published them, exchange counters where they were lost.

Counters of channels distinguish dropped from returned messages. Exchanges count only messages in and out, and are read
every 15 s. A message that an alternate exchange routes to a queue counts as out. One that it cannot route either does
not, and is lost (seen on 3.10.8 and 4.3.6).

One loss belongs to one exchange. Our own probes lose messages at the default exchange, and where many messages pass,
the difference of its two counters is in part noise. What publishers lose is therefore assigned to the other exchanges
first, and only what these do not explain is claimed for the default exchange.

Where the Prometheus endpoints were read, nothing is inferred: they count what each channel loses at each exchange.

Before 3.13 the default exchange counts a message for a queue that does not exist as out (`deliver_to_queues` in
rabbit_channel.erl of 3.10 to 3.12; seen on 3.10.8). There the default exchange loses what no other exchange can lose.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.memo import per_view
from diagnosis.routes import most_targets
from diagnosis.rules.publishers._shared.counted_losses import CountedLoss, counted_losses
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_in, messages_out, shown_loss
from diagnosis.rules.publishers._shared.probe_losses import own_losses
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, by_vhost, increase, lost_rate, publish_rates
from diagnosis.series import count, delta, last, span, steps, stretch
from diagnosis.window import Series, Timestamped

DROPPED, RETURNED = "drop_unroutable", "return_unroutable"

# Type of exchange that delays messages: they count as dropped although they are routed later.
# Source: https://github.com/rabbitmq/rabbitmq-delayed-message-exchange/issues/321
DELAYED = "x-delayed-message"

# An exchange is where messages are lost if it accounts for at least this share of what publishers lose.
_SIMILAR = 0.3
SAME_RATE = 0.25
"""Share by which the loss of an exchange and that of its publishers may differ: they are counted at different times."""

SILENT = 60.0
"""Seconds for which an exchange that routed some messages and lost others must route none, so that it has stopped."""
_LAST_MINUTE = 60.0
"""Seconds in which an exchange that loses messages shows it, also if the broker refreshes its counters late."""
_PAIR = 2
"""Readings of one interval."""
_COUNTS_MISSING_QUEUES = (3, 13)
"""Version before which the default exchange counts messages for missing queues as routed."""


class Routing(StrEnum):
    """What an exchange does with the messages that it receives."""

    STOPPED = "stopped"
    """The exchange used to route messages and routes none now."""
    NEVER = "never"
    """The exchange has never routed a message."""
    PARTLY = "partly"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyExchange:
    """An exchange that receives more than it hands to queues.

    Attributes:
        recent: readings of the latest interval.
        lossy: readings since it began to lose messages.
        routed_before: whether it routed everything earlier in the window.
        counters: counters of channels whose rate fits its loss.
        own: messages per second of our probes that it loses by design.
        miscounted: messages per second that it loses and counts as routed.
        counted: what it loses by the counters of each channel and exchange; None if these were not read.
    """

    exchange: Exchange
    recent: Series[Exchange]
    lossy: Series[Exchange]
    routed_before: bool
    counters: tuple[str, ...]
    own: float = 0.0
    miscounted: float = 0.0
    counted: CountedLoss | None = None

    @property
    def received(self) -> int:
        """Messages received in its latest interval."""
        return messages_in(self.recent)

    @property
    def routed(self) -> int:
        """Messages routed to queues in that interval."""
        return messages_out(self.recent) - round(self.miscounted * span(self.recent))

    @property
    def lost(self) -> int:
        """Messages that no queue took in that interval."""
        return self.received - self.routed

    @property
    def rate(self) -> float:
        """Messages lost per second, without those of our probes."""
        if self.counted is not None:
            return self.counted.rate
        return max(0.0, self.lost / max(span(self.recent), 1.0) - self.own)

    @property
    def routing(self) -> Routing:
        """How the exchange treats the messages that it receives."""
        if self.routed > 0:
            return Routing.PARTLY
        return Routing.STOPPED if self.exchange.stats.publish_out else Routing.NEVER

    @property
    def pauses(self) -> bool:
        """Whether what it routes may only pause: it routed messages while it lost others, and again none just now."""
        silent = stretch(self.lossy, lambda older, newer: messages_out((older, newer)) == 0)
        # The loss may have begun within the first two readings.
        return self.routed == 0 and len(self.lossy) - len(silent) > 1 and span(silent) < SILENT


@dataclass(frozen=True, slots=True, kw_only=True)
class UnroutablePublishers:
    """Channels of one virtual host that recently published messages that no queue took.

    Attributes:
        publishers: `published` of each counts the lost messages only.
        exchanges: where they were lost, the most first; empty if that is not known.
        elsewhere: those whose loss one of the exchanges explains that have a name, and that of no other publisher.
        pending: True if the exchanges were not read since the loss; wait for the next reading.
    """

    vhost: str
    publishers: tuple[ActivePublisher, ...]
    exchanges: tuple[LossyExchange, ...]
    elsewhere: tuple[ActivePublisher, ...]
    pending: bool


def unroutable_publishers(view: View, counter: str) -> tuple[UnroutablePublishers, ...]:
    """Return, by virtual host, who steadily published messages that were dropped or returned."""
    found = per_view(view, _losing_publishers)
    groups = by_vhost(found.get(counter, ()))
    return tuple(_of_vhost(view, vhost, counter, group, found) for vhost, group in groups.items())


def by_design(view: View, exchange: Exchange) -> bool:
    """Return whether settings declare that the exchange needs no subscriber."""
    return any(re.search(pattern, exchange.name) for pattern in view.thresholds.publishers.unroutable_by_design)


def alternate_of(view: View, exchange: Exchange) -> str | None:
    """Return the name of the alternate exchange, which takes what an exchange cannot route; None without one."""
    own = exchange.arguments.get("alternate-exchange")
    if own is not None:
        return str(own)
    for policy in view.policies:
        named = policy.definition.get("alternate-exchange")
        if policy.name == exchange.policy and policy.vhost == exchange.vhost and named and not policy.operator:
            return str(named)
    return None


def _losing_publishers(view: View) -> dict[str, tuple[ActivePublisher, ...]]:
    required = view.thresholds.publishers.unroutable_steps
    found: dict[str, list[ActivePublisher]] = {DROPPED: [], RETURNED: []}
    for channel in view.channels:
        for counter, group in found.items():
            if not getattr(channel.stats, counter):
                continue
            history = view.channel_history(channel.name)
            lost = increase(view, history, counter)
            pairs = [pair for pair in steps(history, view.thresholds.interval / 2) if delta(pair, counter) > 0]
            # If polls are far apart, one interval with several losses is as good as two short ones.
            long = lost > 1 and any(span(pair) >= view.thresholds.early for pair in pairs)
            if lost > 0 and (len(pairs) >= required or long):
                connection = view.connection(channel.connection_name)
                group.append(ActivePublisher(channel=channel, connection=connection, history=history, published=lost))
    return {counter: tuple(sorted(group, key=lambda each: each.channel.name)) for counter, group in found.items()}


def _of_vhost(
    view: View,
    vhost: str,
    counter: str,
    group: list[ActivePublisher],
    found: dict[str, tuple[ActivePublisher, ...]],
) -> UnroutablePublishers:
    counted = _as_counted(view, vhost, counter, group)
    if counted:
        return UnroutablePublishers(
            vhost=vhost, publishers=tuple(group), exchanges=counted, elsewhere=(), pending=False
        )
    here = {kind: [it for it in publishers if it.channel.vhost == vhost] for kind, publishers in found.items()}
    rates = {kind: [each.rate for each in publishers] for kind, publishers in here.items()}
    every = _lossy_exchanges(view, vhost, rates)
    losing = [each for publishers in here.values() for each in publishers]
    unsure = [each for each in every if each.exchange.name and _may_be_skew(each)]
    every = [each for each in every if each not in unsure]
    read = view.window.readings("exchanges")
    began = min(_first_loss(each, counter) for each in group)
    # Exchanges that were read often enough since the first loss will show nothing more.
    settled = bool(read) and read[-1].at.mono >= began + view.thresholds.publishers.unroutable_patience
    unexplained, elsewhere, unassigned = _assign([each for each in every if each.exchange.name], losing)
    lossy = [
        each
        for each in _without_momentary(every, losing)
        if counter in each.counters
        and (each.exchange.name or _is_theirs(each, unexplained, [*unassigned, *unsure], settled=settled))
    ]
    shown, names = tuple(lossy), {each.channel.name for each in unexplained}
    rest = [each for each in group if each.channel.name in names]
    unnamed: list[LossyExchange] = []
    if view.version is not None and view.version < _COUNTS_MISSING_QUEUES:
        assigned = [each for each in every if each.exchange.name and each not in unassigned]
        unnamed = _default_exchange(view, vhost, counter, rest, assigned)
        lossy = [each for each in lossy if each.exchange.name] + unnamed
    if rest and not unnamed:
        lossy = _with_hidden(view, vhost, counter, rest, lossy)
    lossy = [
        _by_publishers(each, here, None if each.exchange.name else names)
        if each in shown and (len(shown) == 1 or not each.exchange.name)
        else each
        for each in lossy
    ]
    pending = not lossy and view.fresh("exchanges") and bool(read) and not settled
    return UnroutablePublishers(
        vhost=vhost, publishers=tuple(group), exchanges=tuple(lossy), elsewhere=tuple(elsewhere), pending=pending
    )


def _as_counted(view: View, vhost: str, counter: str, group: list[ActivePublisher]) -> tuple[LossyExchange, ...]:
    """Return the exchanges that lose messages by the counters of each channel and exchange; () if not all are known."""
    own, exchanges, found = own_losses(view, vhost), {each.key: each for each in view.exchanges}, []
    for loss in counted_losses(view, vhost, counter, group, own):
        history = exchange_histories(view).get(loss.place, ())
        recent = last(history, view.thresholds.interval)
        if loss.place not in exchanges or len(recent) < _PAIR:
            return ()
        expected = 0.0 if loss.place[1] else own
        seen = shown_loss(recent) - expected
        losers = loss.publishers or group
        if seen >= (1 - SAME_RATE) * loss.rate:
            each = _seen_loss(history, recent, (counter,), expected, 0.0)
        elif any(getattr(it.history[0].value.stats, counter) for it in losers) or recent[0].at.mono >= min(
            _first_loss(it, counter) for it in losers
        ):
            missed = loss.rate - seen
            each = _hidden_loss(history, recent, counter, list(losers), own=expected, miscounted=missed)
        else:
            # It was last read before it lost messages.
            return ()
        found.append(replace(each, counted=loss))
    return tuple(found)


def _assign(
    named: list[LossyExchange], losing: list[ActivePublisher]
) -> tuple[list[ActivePublisher], list[ActivePublisher], list[LossyExchange]]:
    """Assign to each exchange that has a name the publisher whose loss is nearest to its own.

    Returns the publishers whose loss these exchanges do not explain, those that alone fit one, and the exchanges that
    fit no publisher.
    """
    left, alone, unassigned, rest = list(losing), [], [], 0.0
    for each in sorted(named, key=lambda it: (-it.rate, it.exchange.name)):
        average = shown_loss(each.lossy)
        fitting = [it for it in left if _is_same(it.rate, each.rate) or _is_same(it.rate, average)]
        if not fitting:
            unassigned.append(each)
            rest += max(each.rate, average)
            continue
        nearest = min(fitting, key=partial(_distance, each.rate))
        left = [it for it in left if it is not nearest]
        if len(fitting) == 1:
            alone.append(nearest)
    # Several publishers together may account for one exchange.
    return ([] if sum(it.rate for it in left) <= (1 + SAME_RATE) * rest else left), alone, unassigned


def _is_theirs(
    default: LossyExchange, unexplained: list[ActivePublisher], unassigned: list[LossyExchange], *, settled: bool
) -> bool:
    """Return whether the default exchange may lose what the assigned exchanges do not explain.

    From 4.2 on, an answer to direct reply-to counts there as received and not as routed (seen on 4.3.6). So where the
    rates differ, an exchange whose loss is nearer is the likelier place, also if one refresh may explain it, and one
    that has not been read since may be (until it is `settled`).
    """
    rate = sum(each.rate for each in unexplained)
    nearer = any(abs(each.rate - rate) < abs(default.rate - rate) for each in unassigned)
    return bool(unexplained) and (_is_same(default.rate, rate) or (settled and not nearer))


def _without_momentary(every: list[LossyExchange], losing: list[ActivePublisher]) -> list[LossyExchange]:
    """Return exchanges without those that seem to lose for one interval what no publisher loses.

    Counters of what an exchange receives and routes may be refreshed apart. It is left out only if others, which have
    lost for longer, explain every publisher.
    """
    lasting = [each for each in every if each.exchange.name and len(each.lossy) > _PAIR]
    if not all(any(_is_same(it.rate, each.rate) for each in lasting) for it in losing):
        return every
    return [each for each in every if len(each.lossy) > _PAIR or any(_is_same(it.rate, each.rate) for it in losing)]


def _distance(rate: float, publisher: ActivePublisher) -> float:
    return abs(publisher.rate - rate)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_RATE * max(one, other)


def _first_loss(publisher: ActivePublisher, counter: str) -> float:
    """Return when its first lost message was seen, on the monotonic clock."""
    readings = publisher.history
    before = getattr(readings[0].value.stats, counter) or 0
    return next((s.at.mono for s in readings if (getattr(s.value.stats, counter) or 0) > before), readings[0].at.mono)


def _lossy_exchanges(view: View, vhost: str, rates: dict[str, list[float]]) -> list[LossyExchange]:
    min_rate = _SIMILAR * min(rate for group in rates.values() for rate in group)
    found = []
    for exchange in view.exchanges:
        if exchange.vhost != vhost or not exchange.stats.publish_in or exchange.internal:
            continue
        history = exchange_histories(view)[exchange.key]
        recent = last(history, view.thresholds.interval)
        lost = messages_in(recent) - messages_out(recent)
        if len(recent) < 2 or messages_in(recent) == 0 or lost <= 0:
            continue
        own = 0.0 if exchange.name else own_losses(view, vhost)
        rate = lost / max(span(recent), 1.0) - own
        if rate < min_rate:
            continue
        found.append(_seen_loss(history, recent, _matching_counters(rate, rates), own, min_rate / 2 if own else 0.0))
    return sorted(found, key=lambda each: (-each.lost, each.exchange.name))


def _may_be_skew(lossy: LossyExchange) -> bool:
    """Return whether the loss of an exchange is one interval in which the broker refreshed one of two counters later.

    What one refresh explains is no loss, unless it adds up: over two intervals, or since the counters began.
    """
    stats, late = lossy.exchange.stats, SKEW_SECONDS * lossy.received / max(span(lossy.recent), 1.0)
    return (
        len(lossy.lossy) <= _PAIR and max(lossy.lost, count(stats, "publish_in") - count(stats, "publish_out")) <= late
    )


def _by_publishers(
    lossy: LossyExchange, losing: dict[str, list[ActivePublisher]], names: set[str] | None
) -> LossyExchange:
    """Return an exchange with the loss that its publishers count, if one late refresh explains the difference.

    A channel counts exactly what it loses. Where much passes an exchange, the difference of its counters is noise.
    """
    recent, interval = lossy.recent, max(span(lossy.recent), 1.0)
    rate = lost_rate(losing, recent[0].at, recent[-1].at, names)
    missed = rate + lossy.own - shown_loss(recent)
    late = SKEW_SECONDS * lossy.received / interval
    fits = 0 < rate * interval <= lossy.received and abs(missed) * interval <= late
    return replace(lossy, miscounted=missed) if fits else lossy


def _seen_loss(
    history: Series[Exchange], recent: Series[Exchange], counters: tuple[str, ...], own: float, least: float
) -> LossyExchange:
    """Return the loss of an exchange that its own counters show."""
    lossy = stretch(history, partial(_loses, own=own, least=least))
    before = history[: len(history) - len(lossy) + 1]
    routed = len(before) > 1 and messages_in(before) > 0 and messages_out(before) >= messages_in(before)
    return LossyExchange(
        exchange=history[-1].value, recent=recent, lossy=lossy, routed_before=routed, counters=counters, own=own
    )


def _default_exchange(
    view: View, vhost: str, counter: str, unexplained: list[ActivePublisher], assigned: list[LossyExchange]
) -> list[LossyExchange]:
    """Return the default exchange if only that one can lose what these publishers lose; else nothing.

    It counts what it loses as routed, so the other exchanges decide: each has routed all that it received, also before,
    or lost what other publishers lose (`assigned`).
    """
    history = exchange_histories(view).get((vhost, ""), ())
    recent = last(history, view.thresholds.interval)
    rate = sum(each.rate for each in unexplained)
    if not unexplained or len(recent) < 2 or messages_in(recent) < (1 - SAME_RATE) * rate * span(recent):
        return []
    others = (each for each in view.exchanges if each.vhost == vhost and each.name and each.stats.publish_in)
    theirs = {each.exchange.key for each in assigned}
    if any(
        _may_hide(view, each, _SIMILAR * rate)
        or (each.key not in theirs and _lost_in_last_minute(view, each) >= _SIMILAR * rate)
        for each in others
    ):
        return []
    own = own_losses(view, vhost)
    miscounted = min(rate + own, messages_in(recent) / span(recent))
    return [_hidden_loss(history, recent, counter, unexplained, own=own, miscounted=miscounted)]


def _lost_in_last_minute(view: View, exchange: Exchange) -> float:
    """Return how many messages a second an exchange lost in the last minute: a busy broker refreshes counters late."""
    return shown_loss(last(exchange_histories(view)[exchange.key], _LAST_MINUTE))


def _with_hidden(
    view: View, vhost: str, counter: str, unexplained: list[ActivePublisher], lossy: list[LossyExchange]
) -> list[LossyExchange]:
    """Return lossy exchanges with the only one that can lose what publishers lose although as many messages leave it.

    A message that reaches two queues leaves an exchange twice, and hides one that is lost. On the default exchange each
    reaches one, but older versions count there what reaches none.
    """
    rate = sum(each.rate for each in unexplained)
    miscounts = view.version is not None and view.version < _COUNTS_MISSING_QUEUES
    here = [each for each in view.exchanges if each.vhost == vhost and each.stats.publish_in and not each.internal]
    hiding = [
        each
        for each in here
        if (_may_hide(view, each, _SIMILAR * rate) if each.name else miscounts and _received_rate(view, each) >= rate)
    ]
    # What the default exchange seems to lose may be answers.
    answers = [each for each in lossy if not each.exchange.name and not _is_same(each.rate, rate)]
    if len(hiding) > 1 or answers:
        published = publish_rates(view, unexplained)
        hiding = [each for each in hiding if _is_same(_received_rate(view, each), published)]
    if len(hiding) != 1 or not hiding[0].name:
        return lossy
    recent = last(history := exchange_histories(view)[hiding[0].key], view.thresholds.interval)
    seen = shown_loss(recent)
    if len(recent) < _PAIR or seen >= (1 - SAME_RATE) * rate:
        return lossy
    found = _hidden_loss(history, recent, counter, unexplained, own=0.0, miscounted=rate - seen)
    return [*(each for each in lossy if each.exchange.key != hiding[0].key and each not in answers), found]


def _received_rate(view: View, exchange: Exchange) -> float:
    recent = last(exchange_histories(view)[exchange.key], view.thresholds.interval)
    return messages_in(recent) / max(span(recent), 1.0)


def _hidden_loss(
    history: Series[Exchange],
    recent: Series[Exchange],
    counter: str,
    publishers: list[ActivePublisher],
    *,
    own: float,
    miscounted: float,
) -> LossyExchange:
    """Return the loss of an exchange whose own counters do not show it: those of its publishers do."""
    began = min(_first_loss(each, counter) for each in publishers)
    # A reading before the loss and one after it enclose an interval with loss.
    since = max((place for place, seen in enumerate(history[:-1]) if seen.at.mono <= began), default=0)
    return LossyExchange(
        exchange=history[-1].value,
        recent=recent,
        lossy=history[since:],
        routed_before=False,
        counters=(counter,),
        own=own,
        miscounted=miscounted,
    )


def _may_hide(view: View, exchange: Exchange, rate: float) -> bool:
    """Return whether an exchange may lose so many messages a second although as many leave it as it receives.

    A message that reaches two queues counts twice as routed, and hides one that is lost.
    """
    recent = last(exchange_histories(view).get(exchange.key, ()), view.thresholds.interval)
    if len(recent) < 2:
        return True
    received, routed = messages_in(recent), messages_out(recent)
    if received < rate * span(recent):
        return False
    most = most_targets(view, *exchange.key)
    lost = received - routed / most if most else float(received)
    return lost - max(0, received - routed) >= rate * span(recent)


def _matching_counters(rate: float, rates: dict[str, list[float]]) -> tuple[str, ...]:
    """Return the counters of channels (dropped, returned or both) whose rate is nearest to the loss."""
    candidates = {kind: [*group, sum(group)] for kind, group in rates.items() if group}
    distances = {kind: min(abs(each - rate) for each in group) for kind, group in candidates.items()}
    nearest = min(distances.values())
    return tuple(kind for kind, distance in distances.items() if distance <= max(nearest * 1.2, 0.1 * rate))


def _loses(older: Timestamped[Exchange], newer: Timestamped[Exchange], *, own: float, least: float) -> bool:
    """Return whether an exchange lost messages; where our probes lose some all the time, at least so many a second."""
    pair = (older, newer)
    return messages_in(pair) > 0 and messages_in(pair) - messages_out(pair) > (own + least) * span(pair)

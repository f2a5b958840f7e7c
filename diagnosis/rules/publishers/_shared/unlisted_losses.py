"""Exchanges that lose messages by their own counters, where the broker lists no clients.

A broker without statistics counts at its Prometheus endpoints what each exchange received, dropped and returned, from
4.0 on. These counters are exact, and name neither client nor routing key. What our own probes lose is subtracted by
their pace. Before 4.2 an answer to direct reply-to counts as dropped at the default exchange although it arrives, and
only lists of clients would show that.
Source: rabbitmq-server issue 6124; counters seen on 4.0.5 and 4.3.6
"""

from collections import defaultdict
from collections.abc import Iterator

from ackscope.topology import Exchange
from diagnosis.contract import View
from diagnosis.rules.publishers._shared.counted_losses import CountedLoss
from diagnosis.rules.publishers._shared.direct_replies import counts_direct_replies
from diagnosis.rules.publishers._shared.exchange_counts import exchange_histories, messages_lost
from diagnosis.rules.publishers._shared.lossy_exchanges import DROPPED, LossyExchange, UnroutablePublishers
from diagnosis.rules.publishers._shared.probe_losses import own_losses
from diagnosis.series import last, readings_since, span, steps, stretch
from diagnosis.window import Series

_NOISE = 0.25
"""Least share of what our probes lose at an exchange that others must lose there beside them: their pace is a mean."""
_LATE = 60.0
"""Seconds for which our probes may be late: what they publish at once then, was missing before."""


def unlisted_losses(view: View, counter: str) -> tuple[UnroutablePublishers, ...]:
    """Return, by virtual host, the exchanges that steadily lose messages in this way, the most first.

    Args:
        view: the view that is being judged; it counts what exchanges lose.
        counter: `drop_unroutable` or `return_unroutable`.
    """
    found: dict[str, list[LossyExchange]] = defaultdict(list)
    for exchange in losing_exchanges(view, counter):
        if not (counter == DROPPED and may_be_answers(view, exchange)):
            lossy = _lossy(view, exchange, counter)
            found[exchange.vhost] += [lossy] if lossy is not None else []
    return tuple(
        UnroutablePublishers(
            vhost=vhost,
            publishers=(),
            exchanges=tuple(sorted(exchanges, key=lambda each: (-each.rate, each.exchange.name))),
            elsewhere=(),
            pending=False,
        )
        for vhost, exchanges in sorted(found.items())
        if exchanges
    )


def uncertain_answers(view: View) -> Iterator[tuple[Exchange, float]]:
    """Yield the default exchanges that drop messages which may be answers that arrive, and how many a second."""
    for exchange in losing_exchanges(view, DROPPED):
        lossy = _lossy(view, exchange, DROPPED) if may_be_answers(view, exchange) else None
        if lossy is not None:
            yield exchange, lossy.rate


def losing_exchanges(view: View, counter: str) -> Iterator[Exchange]:
    """Yield the exchanges of applications that ever lost a message in this way."""
    for exchange in view.exchanges:
        if getattr(exchange.stats, counter) and not exchange.name.startswith(view.thresholds.own_prefixes):
            yield exchange


def may_be_answers(view: View, exchange: Exchange) -> bool:
    """Return whether what an exchange drops may be answers to direct reply-to, which arrive."""
    return not exchange.name and counts_direct_replies(view)


def _lossy(view: View, exchange: Exchange, counter: str) -> LossyExchange | None:
    """Return the loss of an exchange if it lasts: in several intervals, or in one long one, as for channels."""
    history, interval = exchange_histories(view).get(exchange.key, ()), view.thresholds.interval
    own = own_losses(view, exchange.vhost) if not exchange.name and counter == DROPPED else 0.0
    # Readings are as frequent as the broker refreshes its counters, so a pair of them may show nothing.
    marks = steps(history, interval)
    losing = stretch(
        (*(older for older, _ in marks[:1]), *(newer for _, newer in marks)),
        lambda older, newer: messages_lost((older, newer), counter) > (1 + _NOISE) * own * newer.at.since(older.at),
    )
    recent = last(history, interval)
    if not losing or not span(recent):
        return None
    lost = messages_lost(recent, counter) - own * span(recent)
    around = readings_since(history, losing[0].at.mono - (_LATE if own else 0.0))
    beside = messages_lost(around, counter) - (1 + _NOISE) * own * span(around)
    number = len(losing) - 1
    long = number > 0 and messages_lost(losing, counter) > 1 and span(losing) >= view.thresholds.early
    if min(lost, beside) <= 0 or not (number >= view.thresholds.publishers.unroutable_steps or long):
        return None
    lossy = tuple(seen for seen in history if seen.at.mono >= losing[0].at.mono)
    return LossyExchange(
        exchange=exchange,
        recent=recent,
        lossy=lossy,
        routed_before=_routed_before(history[: len(history) - len(lossy) + 1]),
        counters=(counter,),
        own=own,
        counted=CountedLoss(
            place=exchange.key,
            lost=round(lost),
            seconds=span(recent),
            publishers=(),
            whole=False,
            elsewhere=frozenset(),
        ),
    )


def _routed_before(before: Series[Exchange]) -> bool:
    received = (before[-1].value.stats.publish_in or 0) - (before[0].value.stats.publish_in or 0)
    return received > 0 and not any(messages_lost(before, each) for each in ("drop_unroutable", "return_unroutable"))

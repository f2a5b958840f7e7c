"""Queues that are gone since a loss began, and for how long its publishers have lost all that they publish."""

from collections.abc import Iterator, Sequence

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.publishers._shared.away_queues import exchanges_to
from diagnosis.rules.publishers._shared.lossy_exchanges import SAME_RATE, LossyExchange
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, publish_rate
from diagnosis.rules.queues._shared.deletions import deletions_of, is_by_expiry
from diagnosis.rules.queues._shared.queue import is_lasting, is_private
from diagnosis.series import REFRESH, count, delta, span
from diagnosis.window import Series

_SAME_TIME = 45.0
"""Seconds between the last reading of a queue and the first of a loss that it caused: exchanges are read every 15 s."""
_MUCH = 0.25
"""Least share of its messages that a publisher must have lost since it opened its channel, so that it lasts."""


def fed_until_gone(view: View, lossy: LossyExchange, publishers: Sequence[ActivePublisher]) -> Iterator[Queue]:
    """Yield the queues that got messages until about when the loss began, and are gone.

    On the default exchange, private queues are left out: they are reply queues, which come and go. So are those that
    got more than the publishers of the lost messages publish at all.
    """
    most = sum(publish_rate(view, each) for each in publishers)
    began, exchange = lossy.lossy[0].at, lossy.exchange
    for queue in view.gone_queues():
        if queue.vhost != exchange.vhost or (is_private(queue) and not exchange.name):
            continue
        readings = view.listings(queue)
        if delta(readings, "publish") <= 0 or abs(began.since(readings[-1].at)) > _SAME_TIME:
            continue
        if exchange.name:
            if exchange.name in exchanges_to(view, queue.vhost, queue.name):
                yield queue
        elif not publishers or _rate_of(readings) <= (1 + SAME_RATE) * most:
            yield queue


def has_expired(view: View, queue: Queue) -> bool:
    """Return whether a queue that outlasts its clients is gone because it had no consumer for too long."""
    return is_lasting(queue) and is_by_expiry(view, [*deletions_of(view.presence(queue.key))])


def lost_seconds(view: View, counter: str, losers: Sequence[ActivePublisher]) -> float:
    """Return how long publishers took to publish what they have lost in all; 0 if it is a small part of what they did.

    Who loses all that it publishes has lost messages for so long in sum. Deployments lose a small part.
    """
    age = max((age_seconds(view, each.connection) for each in losers), default=0.0)
    lost = sum(count(each.channel.stats, counter) for each in losers)
    published, pace = (
        sum(count(each.channel.stats, "publish") for each in losers),
        sum(publish_rate(view, each) for each in losers),
    )
    return min(age, lost / pace) if pace > 0 and lost >= _MUCH * published else 0.0


def _rate_of(readings: Series[Queue]) -> float:
    """Return the messages per second that a queue got before it went, with what late counters may have added."""
    return delta(readings, "publish") / (span(readings) + REFRESH)

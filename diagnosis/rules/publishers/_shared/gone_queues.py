"""Queues that are gone since a loss began."""

from collections.abc import Iterator, Sequence

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.publishers._shared.away_queues import exchanges_to
from diagnosis.rules.publishers._shared.lossy_exchanges import SAME_RATE, LossyExchange
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, publish_rates
from diagnosis.rules.queues._shared.deletions import deletions_of, is_by_expiry
from diagnosis.rules.queues._shared.queue import is_lasting, is_private
from diagnosis.series import REFRESH, delta, span
from diagnosis.window import Series

_SAME_TIME = 45.0
"""Seconds between the last reading of a queue and the first of a loss that it caused: exchanges are read every 15 s."""


def fed_until_gone(view: View, lossy: LossyExchange, publishers: Sequence[ActivePublisher]) -> Iterator[Queue]:
    """Yield the queues that got messages until about when the loss began, and are gone.

    On the default exchange, private queues are left out: they are reply queues, which come and go. So are those that
    got more than the publishers of the lost messages publish at all.
    """
    most = publish_rates(view, publishers)
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


def _rate_of(readings: Series[Queue]) -> float:
    """Return the messages per second that a queue got before it went, with what late counters may have added."""
    return delta(readings, "publish") / (span(readings) + REFRESH)

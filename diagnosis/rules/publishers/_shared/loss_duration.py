"""For how long messages have been lost, by what their publishers counted since they opened their channels."""

from collections.abc import Sequence

from diagnosis.contract import View
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.publishers._shared.lossy_exchanges import SAME_RATE, LossyExchange
from diagnosis.rules.publishers._shared.publishers import ActivePublisher, increase, publish_rates
from diagnosis.rules.publishers._shared.starved_queues import QuietQueue
from diagnosis.series import count, span

_MUCH = 0.25
"""Least share of its messages that a publisher must have lost since it opened its channel, so that it lasts."""


def lost_seconds(view: View, counter: str, losers: Sequence[ActivePublisher]) -> float:
    """Return how long publishers took to publish what they have lost in all; 0 if it is a small part of what they did.

    Who loses all that it publishes has lost messages for so long in sum. Deployments lose a small part.
    """
    age = max((age_seconds(view, each.connection) for each in losers), default=0.0)
    lost = sum(count(each.channel.stats, counter) for each in losers)
    published, pace = sum(count(each.channel.stats, "publish") for each in losers), publish_rates(view, losers)
    return min(age, lost / pace) if pace > 0 and lost >= _MUCH * published else 0.0


def seconds_at_this_rate(
    view: View, counter: str, lossy: LossyExchange, publishers: Sequence[ActivePublisher], counted: Sequence[QuietQueue]
) -> float:
    """Return for how long the present rate explains what publishers have lost since they opened their channels.

    They have not lost messages for longer than they are connected. Where the exchange was seen to route everything
    before, or a publisher loses a larger share now than since it opened its channel, they may have lost the others at
    an earlier time; not where a queue got all that it did not lose (`counted`).
    """
    if lossy.routed_before or (not counted and any(_lost_less_before(view, counter, each) for each in publishers)):
        return 0.0
    lost = sum(count(each.channel.stats, counter) for each in publishers)
    # They may lose messages at other exchanges, too.
    rate = max(
        lossy.rate, sum(increase(view, each.history, counter) / max(span(each.history), 1.0) for each in publishers)
    )
    ages = [age_seconds(view, each.connection) for each in publishers if each.connection is not None]
    return min(lost / rate, max(ages)) if rate > 0 and ages else 0.0


def _lost_less_before(view: View, counter: str, publisher: ActivePublisher) -> bool:
    now = publisher.published / max(1, increase(view, publisher.history, "publish"))
    stats = publisher.channel.stats
    return count(stats, counter) < (1 - SAME_RATE) * min(1.0, now) * count(stats, "publish")

"""Messages that circulate between a queue and its consumers: redelivered again and again, and hardly acknowledged.

Where other messages are acknowledged meanwhile, the mean decides: of the messages that a queue acknowledged and holds,
each was redelivered so many times. A message that succeeds at its second attempt is redelivered once.
"""

from collections.abc import Callable

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import count, delta, span, steps
from diagnosis.window import Series, Timestamped

PARTLY = 0.3
"""Share of the deliveries that come back from which on consumers waste a good part of their work."""

REFRESH_SECONDS = 4.0
"""The broker refreshes its statistics every 5 s."""


def redelivery_rounds(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """Return the latest readings, at least `seconds` apart, with messages circulating between each pair; else empty."""
    return _latest(history, seconds, lambda older, newer: _circulates(view, older, newer))


def redelivered_in_between(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """Return the latest readings with messages circulating while others are acknowledged between each pair; else empty.

    A pair with fewer redeliveries ends them only if it is not made up for by the rest: attempts come in bursts.
    """
    found = _latest(history, seconds, lambda older, newer: delta((older, newer), "redeliver") > 0)
    if len(found) < 2:
        return ()
    limits, newest = view.limits(found[-1].value), found[-1].value
    redelivered, acked, delivered = delta(found, "redeliver"), delta(found, "ack"), _delivered(found[0], found[-1])
    held = max(seen.value.messages or 0 for seen in found)
    enough = (
        redelivered > limits.consumers.requeue_share * delivered
        and redelivered > limits.consumers.requeue_rate * span(found)
        and redelivered >= limits.consumers.requeue_mean * (acked + held)
    )
    return found if enough and newest.consumers else ()


def redelivered_partly(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """Return the latest readings, at least `seconds` apart, with many redeliveries between each pair; else empty."""

    def partly(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
        redelivered, least = delta((older, newer), "redeliver"), view.limits(newer.value).consumers.requeue_rate
        enough = redelivered > least * newer.at.since(older.at)
        return enough and redelivered >= PARTLY * _delivered(older, newer)

    return _latest(history, seconds, partly)


def _latest(
    history: Series[Queue], seconds: float, holds: Callable[[Timestamped[Queue], Timestamped[Queue]], bool]
) -> Series[Queue]:
    """Return the latest readings, at least `seconds` apart, as long as something holds between each and the next."""
    found: list[Timestamped[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        if not holds(older, newer):
            break
        found = [older, *(found or [newer])]
    return tuple(found)


def deliveries(queue: Queue) -> int:
    """Return all deliveries including redeliveries; the parts are added up only if the broker gives no sum."""
    return queue.stats.deliver_get or count(queue.stats, "deliver", "deliver_no_ack", "get", "get_no_ack")


def only_polled(history: Series[Queue]) -> bool:
    """Return whether all deliveries were responses to basic.get: no consumer subscribed."""
    return delta(history, "get") > 0 and delta(history, "deliver", "deliver_no_ack") == 0


def _delivered(older: Timestamped[Queue], newer: Timestamped[Queue]) -> int:
    return deliveries(newer.value) - deliveries(older.value)


def _circulates(view: View, older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    limits = view.limits(newer.value)
    redelivered, acked = delta((older, newer), "redeliver"), delta((older, newer), "ack")
    delivered = _delivered(older, newer)
    return (
        delivered > 0
        and redelivered / delivered > limits.consumers.requeue_share
        and redelivered / newer.at.since(older.at) > limits.consumers.requeue_rate
        and acked / delivered < limits.consumers.requeue_acked
    )

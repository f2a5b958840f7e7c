"""Messages that circulate between a queue and its consumers: redelivered again and again, and hardly acknowledged."""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import count, delta, steps
from diagnosis.window import Series, Timestamped

REFRESH_SECONDS = 4.0
"""The broker refreshes its statistics every 5 s."""


def redelivery_rounds(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """Return the latest readings, at least `seconds` apart, with messages circulating between each pair; else empty."""
    found: list[Timestamped[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        if not _circulates(view, older, newer):
            break
        found = [older, *(found or [newer])]
    return tuple(found)


def deliveries(queue: Queue) -> int:
    """Return all deliveries including redeliveries; the parts are added up only if the broker gives no sum."""
    return queue.stats.deliver_get or count(queue.stats, "deliver", "deliver_no_ack", "get", "get_no_ack")


def _circulates(view: View, older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    limits = view.limits(newer.value)
    redelivered, acked = delta((older, newer), "redeliver"), delta((older, newer), "ack")
    delivered = deliveries(newer.value) - deliveries(older.value)
    return (
        delivered > 0
        and redelivered / delivered > limits.consumers.requeue_share
        and redelivered / newer.at.since(older.at) > limits.consumers.requeue_rate
        and acked / delivered < limits.consumers.requeue_acked
    )

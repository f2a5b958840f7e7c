"""Messages that circulate between a queue and its consumers: redelivered again and again, and hardly acknowledged."""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import count, delta, steps
from diagnosis.window import Series, Timestamped

REFRESH_SECONDS = 4.0
"""The broker refreshes its statistics every 5 s."""


def redelivery_rounds(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """The latest readings, at least `seconds` apart, between all of which messages circulated; empty if they do not."""
    found: list[Timestamped[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        if not _circulates(view, older, newer):
            break
        found = [older, *(found or [newer])]
    return tuple(found)


def deliveries(queue: Queue) -> int:
    """All deliveries, first ones and repeated ones; their parts are added up only where the broker gives no sum."""
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

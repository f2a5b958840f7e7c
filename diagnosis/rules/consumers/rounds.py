"""Messages that go round between a queue and its consumers: delivered again and again, and hardly acknowledged."""

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import count, delta, steps
from diagnosis.window import Seen, Series

REFRESH = 4.0
"""Seconds; the broker refreshes its figures every 5 s."""


def rounds(view: View, history: Series[Queue], seconds: float) -> Series[Queue]:
    """The latest readings, so far apart, in each of which messages went round; empty where they do not."""
    loops: list[Seen[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        if not _goes_round(view, older, newer):
            break
        loops = [older, *(loops or [newer])]
    return tuple(loops)


def delivered(queue: Queue) -> int:
    """All deliveries, first ones and repeated ones; the sum only where the broker does not give it."""
    return queue.stats.deliver_get or count(queue.stats, "deliver", "deliver_no_ack", "get", "get_no_ack")


def _goes_round(view: View, older: Seen[Queue], newer: Seen[Queue]) -> bool:
    limits = view.limits(newer.value)
    redelivered, acked = delta((older, newer), "redeliver"), delta((older, newer), "ack")
    gained = delivered(newer.value) - delivered(older.value)
    return (
        gained > 0
        and redelivered / gained > limits.consumers.requeue_share
        and redelivered / newer.at.since(older.at) > limits.consumers.requeue_rate
        and acked / gained < limits.consumers.requeue_acked
    )

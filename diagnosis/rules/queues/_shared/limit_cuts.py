"""Queues that a new length limit cut: they held more than it allows, and their oldest messages were dropped at once.

The law: a queue that drops its oldest messages never holds more than its limit. So a reading above the limit of the
next one shows that the limit is newer, also where the settings of that time are not known (samples of the broker have
none). If the next reading is at the limit, and clients did not take what is gone, the limit removed it: no purge leaves
that many, and what expires does not stop there.
Source: https://www.rabbitmq.com/docs/maxlength
"""

from dataclasses import dataclass

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.ledger import may_have_lost, may_settle_unseen
from diagnosis.memo import per_view
from diagnosis.purpose import DELIVERED
from diagnosis.rules.publishers._shared.overflow import has_length_limit, level, refuses_when_full
from diagnosis.series import delta
from diagnosis.window import Series, Timestamped


@dataclass(frozen=True, slots=True)
class LimitCut:
    """What a new length limit removed.

    Attributes:
        before, after: the queue at the two readings between which it did.
        lost: minimum of removed messages.
    """

    before: Timestamped[Queue]
    after: Timestamped[Queue]
    lost: int


def limit_cut(view: View, queue: Queue) -> LimitCut | None:
    """Return the latest time at which a new length limit cut a queue; None if none did."""
    return per_view(view, _cuts).get(queue.key)


def _cuts(view: View) -> dict[tuple[str, str], LimitCut]:
    drops = (each for each in view.queues if each.type != "stream" and has_length_limit(each))
    losing = (each for each in drops if not refuses_when_full(each) and may_have_lost(view, each))
    known = (each for each in losing if not may_settle_unseen(view, each))
    return {each.key: cut for each in known if (cut := _latest(view, each)) is not None}


def _latest(view: View, queue: Queue) -> LimitCut | None:
    history, limits = view.history(queue), view.limits(queue).queues
    for place in range(len(history) - 2, -1, -1):
        before, after = history[place : place + 2]
        if _exceeds(before.value, after.value) and level(after.value) >= limits.full_share:
            lost = _lost(history, place)
            if lost >= limits.loss_least:
                return LimitCut(before, after, lost)
    return None


def _exceeds(before: Queue, after: Queue) -> bool:
    """Return whether a queue held more than the limits allow that it has at the next reading."""
    pairs = (("max-length", before.messages_ready), ("max-length-bytes", before.message_bytes_ready))
    return any(
        isinstance(limit := after.setting(name), int) and held is not None and held > limit for name, held in pairs
    )


def _lost(history: Series[Queue], place: int) -> int:
    """Return how many messages left between a reading and the next one, and were not delivered."""
    before, after = history[place : place + 2]
    around = history[max(place - 1, 0) : place + 4]
    # Deliveries are counted some seconds after the length has fallen.
    if around[-1] is after and not before.value.consumers == after.value.consumers == 0:
        return 0
    return (before.value.messages_ready or 0) - (after.value.messages_ready or 0) - delta(around, *DELIVERED)

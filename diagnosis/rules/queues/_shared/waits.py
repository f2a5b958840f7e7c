"""How long messages wait in a queue that is drained by expiry alone, from first in, first out.

The oldest of N messages is the N-th last that was published. So the publish counter of earlier readings bounds its age,
and that of the last message that left. Messages that arrive as dead letters are not counted as published: a queue that
gets them is not judged.
"""

from dataclasses import dataclass
from itertools import pairwise

from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.series import delta, span
from diagnosis.window import Series, Timestamped

_LEAST = 2
"""Messages that a balance may be wrong by, however slow the queue is."""

_TWO_REFRESHES, _HALF = 10.0, 0.55
"""Over fewer seconds, one of two numbers may have been refreshed twice and the other one once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A proven wait of an oldest message.

    Attributes:
        seen: the reading at which it was the oldest one.
        least: minimum seconds that it had waited by then.
    """

    seen: Timestamped[Queue]
    least: float


def skew(view: View, queue: Queue, series: Series[Queue]) -> float:
    """Return how many messages a balance over a series may be wrong by: its parts are refreshed at different times."""
    seconds = span(series)
    rate = delta(series, "publish") / seconds if seconds > 0 else 0.0
    return max(_LEAST, view.limits(queue).queues.loss_skew * rate)


def left(series: Series[Queue]) -> int:
    """Return how many messages expired in an unconsumed queue; negative if some arrived without a publish."""
    return delta(series, "publish") - (_ready(series[-1]) - _ready(series[0])) if series else 0


def gone(series: Series[Queue]) -> int:
    """Return how many messages left an unconsumed queue; what it stores after expiry (at-least-once) is still there."""
    if not series:
        return 0
    return delta(series, "publish") - ((series[-1].value.messages or 0) - (series[0].value.messages or 0))


def fed_by_publishes(view: View, queue: Queue) -> bool:
    """Return whether all arrivals within the window were publishes."""
    history = view.history(queue)
    # A publish counter that is late shows more arrivals than publishes for one reading, and the reverse in the next.
    wide = (*zip(history, history[2:], strict=False), history[-2:])
    return all(left(pair) >= -_unsure(view, queue, pair, share=1.0) for pair in wide)


def standstill(view: View, queue: Queue) -> Series[Queue]:
    """Return the latest stretch in which an unconsumed queue had messages and none left."""
    history = view.history(queue)
    start = len(history) - 1
    while start > 0:
        older, newer = history[start - 1], history[start]
        tail = history[start - 1 :]
        if not _ready(older) or _ready(older) > _ready(newer) or left(tail) > _unsure(view, queue, tail, share=_HALF):
            break
        start -= 1
    return history[start:]


def _unsure(view: View, queue: Queue, series: Series[Queue], share: float) -> float:
    """Return how many messages a balance may be wrong by; over a short time, at least a share of what was published."""
    short = span(series) < _TWO_REFRESHES
    return max(skew(view, queue, series), share * delta(series, "publish") if short else 0.0)


def longest_wait(view: View, queue: Queue) -> Wait | None:
    """Return the longest proven wait of an oldest message; None if the last one is longer ago than it lasted."""
    history = view.history(queue)
    best: Wait | None = None
    # The publish counter may be late, so that of the next reading is the maximum for this one.
    for index, (seen, following) in enumerate(pairwise(history)):
        for older in history[:index]:
            between = (older, following)
            if delta(between, "publish") + skew(view, queue, between) < _ready(seen):
                least = seen.at.since(older.at)
                if view.now.since(seen.at) <= least and (best is None or least >= best.least):
                    best = Wait(seen=seen, least=least)
                break
    return best


def shortest_wait(view: View, queue: Queue) -> float | None:
    """Return the shortest time that a message which left has waited, at most; None if none was seen to leave.

    Of all messages but the latest N, N being those that are in the queue, each has left.
    """
    history = view.history(queue)
    found: list[float] = []
    for index, seen in enumerate(history):
        for older in reversed(history[:index]):
            between = (older, seen)
            if delta(between, "publish") > _ready(seen) + skew(view, queue, between):
                found.append(seen.at.since(older.at))
                break
    return min(found, default=None)


def _ready(seen: Timestamped[Queue]) -> int:
    return seen.value.messages_ready or 0

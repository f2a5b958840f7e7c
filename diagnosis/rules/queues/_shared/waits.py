"""How long messages wait in a queue that is drained by expiry alone, from first in, first out.

The oldest of N messages is the N-th last that was published. So the publish counter of earlier readings bounds its age,
and that of the last message that left. Messages that arrive as dead letters are not counted as published: a queue that
gets them is not judged.
"""

import math
from dataclasses import dataclass

from ackscope.findings import Fact
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.publishers._shared.overflow import has_length_limit, level, refuses_when_full
from diagnosis.rules.queues._shared.queue import queue_with_policy
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series

_LEAST = 2
"""Messages that a balance may be wrong by, however slow the queue is."""

_SHORTER = 0.8
"""Share of the TTL below which a wait is shorter."""

_TWO_REFRESHES, _HALF = 10.0, 0.55
"""Over fewer seconds, one of two numbers may have been refreshed twice and the other one once."""


def skew(view: View, queue: Queue, series: Series[Queue]) -> float:
    """Return how many messages a balance over a series may be wrong by: its parts are refreshed at different times."""
    seconds = span(series)
    rate = delta(series, "publish") / seconds if seconds > 0 else 0.0
    return max(_LEAST, view.limits(queue).queues.loss_skew * rate)


def gone(series: Series[Queue]) -> int:
    """Return how many messages left an unconsumed queue; what it stores after expiry (at-least-once) is still there."""
    if not series:
        return 0
    return delta(series, "publish") - ((series[-1].value.messages or 0) - (series[0].value.messages or 0))


def cut_short(view: View, queue: Queue, least: float, rate: float) -> dict[str, Fact] | None:
    """Return by how much a full queue shortens the wait of its messages; None if it is not known to shorten it.

    Each message that comes pushes out the oldest one, which is dead-lettered before its TTL has passed. A message waits
    as long as it takes for as many others to come as the queue holds.

    Args:
        view: the view that is being judged.
        queue: a queue with a message TTL that is drained by expiry alone.
        least: messages that come per second, at least.
        rate: messages that come per second, as presumed; 0 if unknown.

    Returns:
        `{"queue", "ready", "max_length", "ttl_seconds", "wait_seconds", "limit_is_argument", "longer_limit"}`.
    """
    ttl, length = queue.setting("message-ttl"), queue.setting("max-length")
    if not isinstance(ttl, int) or not has_length_limit(queue) or refuses_when_full(queue) or not queue.messages_ready:
        return None
    ready, seconds, share = queue.messages_ready, ttl / 1000, view.limits(queue).queues.full_share
    # In a queue that is at its limit for as long as a message may wait, more messages came than it has room for.
    at_limit = stretch(view.history(queue), lambda older, newer: min(level(older.value), level(newer.value)) >= 1.0)
    stays = level(queue) >= 1.0 and span(at_limit) >= seconds
    if level(queue) < share or not (stays or ready < _SHORTER * seconds * least):
        return None
    by_number = isinstance(length, int) and ready >= share * length
    limit, name = (length, "x-max-length") if by_number else (queue.setting("max-length-bytes"), "x-max-length-bytes")
    return {
        "queue": queue_with_policy(view, queue),
        "ready": ready,
        "max_length": length if by_number else None,
        "ttl_seconds": seconds,
        "wait_seconds": ready / max(rate, least) if max(rate, least) else None,
        "limit_is_argument": queue.arguments.get(name) == limit,
        "longer_limit": max(10 * length, math.ceil(2 * rate * seconds)) if by_number else None,
    }


@dataclass(frozen=True, slots=True)
class WaitFlow:
    """The readings of one unconsumed queue as numbers, oldest first. Methods take indexes of readings.

    Attributes:
        at: seconds by the monotonic clock.
        published: messages published since the counters began.
        ready: messages in the queue that have not expired.
        seconds: how far apart in time the two numbers may be.
    """

    at: tuple[float, ...]
    published: tuple[int, ...]
    ready: tuple[int, ...]
    seconds: float

    @classmethod
    def of(cls, view: View, queue: Queue) -> "WaitFlow":
        """Return the flow of a queue over its history."""
        history = view.history(queue)
        return cls(
            at=tuple(seen.at.mono for seen in history),
            published=tuple(seen.value.stats.publish or 0 for seen in history),
            ready=tuple(seen.value.messages_ready or 0 for seen in history),
            seconds=view.limits(queue).queues.loss_skew,
        )

    def fed_by_publishes(self) -> bool:
        """Return whether all arrivals within the window were publishes."""
        last = len(self.at) - 1
        # A publish counter that is late shows too few publishes in one reading, and too many in the next.
        wide = [*((first, first + 2) for first in range(last - 1)), (max(last - 1, 0), last)]
        return all(self._left(first, end) >= -self._unsure(first, end, share=1.0) for first, end in wide)

    def standstill(self) -> int:
        """Return the index at which the latest stretch begins in which the queue had messages and none left."""
        last = len(self.at) - 1
        start = last
        while start > 0:
            older = start - 1
            if not 0 < self.ready[older] <= self.ready[start]:
                break
            if self._left(older, last) > self._unsure(older, last, share=_HALF):
                break
            start = older
        return start

    def flows_in(self, start: int) -> bool:
        """Return whether more was published since a reading than the numbers may be wrong by."""
        last = len(self.at) - 1
        return self.published[last] - self.published[start] >= 2 * self._skew(start, last)

    def longest_wait(self, least: float) -> float | None:
        """Return the longest proven wait of an oldest message; None if it is shorter, or longer ago than it lasted."""
        best: float | None = None
        # The publish counter may be late, so that of the next reading is the maximum for this one.
        for end in range(1, len(self.at) - 1):
            for older in range(end):
                waited = self.at[end] - self.at[older]
                if waited < least:
                    break
                arrived = self.published[end + 1] - self.published[older] + self._skew(older, end + 1)
                if arrived < self.ready[end]:
                    if self.at[-1] - self.at[end] <= waited:
                        best = max(best or 0.0, waited)
                    break
        return best

    def shortest_wait(self) -> float | None:
        """Return the shortest time that a message which left has waited, at most; None if none was seen to leave.

        Of all messages but the latest N, N being those that are in the queue, each has left.
        """
        found: list[float] = []
        for end in range(1, len(self.at)):
            for older in range(end - 1, -1, -1):
                if self.published[end] - self.published[older] > self.ready[end] + self._skew(older, end):
                    found.append(self.at[end] - self.at[older])
                    break
        return min(found, default=None)

    def _left(self, first: int, end: int) -> int:
        """Return how many messages left between two readings; negative if some arrived without a publish."""
        return self.published[end] - self.published[first] - self.ready[end] + self.ready[first]

    def _skew(self, first: int, end: int) -> float:
        seconds = self.at[end] - self.at[first]
        if seconds <= 0:
            return _LEAST
        return max(_LEAST, self.seconds * (self.published[end] - self.published[first]) / seconds)

    def _unsure(self, first: int, end: int, share: float) -> float:
        """Return how many messages a balance may be wrong by; over a short time, a share of what was published."""
        short = self.at[end] - self.at[first] < _TWO_REFRESHES
        published = self.published[end] - self.published[first]
        return max(self._skew(first, end), share * published if short else 0.0)

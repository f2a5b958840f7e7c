"""Cumulative flow of one queue: which message is its oldest, and when it arrived. Needs no timestamps.

Arrivals are numbered in their order. In a queue that is first in, first out, the oldest message is the one after all
that are gone: it arrived when the cumulative arrivals passed what is gone now. Whatever the order in which messages
leave, the oldest message is at least that old.

The publish and ack counters of a queue are consistent: the broker takes both at the same time, every 5 s. Its message
count is up to 5 s older. It tells how many messages came or left without being counted: dead letters, expired,
rejected, dropped and purged ones.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

from ackscope.snapshot import Queue
from diagnosis.purpose import CONSUMED
from diagnosis.series import REFRESH, count

POINTS, _COARSE = 64, 24
"""Points of the arrivals of a queue that are held, and how many of the oldest are thinned if there are more."""

_READINGS = 5
"""Latest readings from which rates are taken."""

_UNCOUNTED, _UNCOUNTED_SHARE = 3.0, 0.1
"""Difference between message count and counters that is taken for skew: messages, and share of the flow in between."""

_DEVIATIONS = 1.5
"""Standard deviations that a message may be off its place in the flow."""

_CHANGE = 0.15
"""Share by which the rate of departures may have changed since the latest refresh."""

_LEAST_DISPERSION = 0.2

_NEIGHBOURS = 2
"""Intervals before and after the one in which a message came, from which its place in it is estimated."""

_JITTER, _DRIFT = 0.3, 0.004
"""Seconds by which the time from a refresh of the statistics to a poll varies, and by how much more in each second."""


_COUNT_OLDER, _SKEW = 4.8, 0.05
"""Seconds by which the message count may be older than the counters, and share of the flow in between as reserve."""


class FlowReading(NamedTuple):
    """Counters of a queue at one time: cumulative arrivals, and departures that the broker counted."""

    at: float
    arrived: float
    left: int


class HeadArrival(NamedTuple):
    """When the oldest message arrived, in seconds of the monotonic clock.

    Attributes:
        after: it arrived after this; None if unknown.
        before: it arrived at this time or before.
    """

    after: float | None
    before: float


def departures(queue: Queue) -> int:
    """Return how many messages left the queue by acknowledgement, or by delivery without one."""
    return count(queue.stats, *CONSUMED)


class QueueFlow:
    """Cumulative arrivals and departures of one queue over its readings, in bounded memory.

    Args:
        at: time of the first reading, seconds of the monotonic clock.
        queue: the first reading, with a message count.
        absent_at: when the queue did not exist yet; None if it may be older than the first reading.

    Attributes:
        readings: latest readings, oldest first.
        uncounted_at: when messages last left without being counted; None if never.
        redelivered_at: when messages were last redelivered; None if never.
    """

    __slots__ = (
        "_arrived",
        "_at",
        "_delay",
        "_extra",
        "_gone",
        "_redelivered",
        "readings",
        "redelivered_at",
        "uncounted_at",
    )

    def __init__(self, at: float, queue: Queue, absent_at: float | None = None) -> None:
        arrived, left, messages = float(count(queue.stats, "publish")), departures(queue), queue.messages or 0
        self._extra = 0.0 if absent_at is None else max(0.0, messages + left - arrived)
        arrived += self._extra
        self._delay = REFRESH
        # Messages gone are departures + an offset between these bounds; 0 if the counters tell of all messages.
        self._gone = (arrived - left - messages,) * 2 if absent_at is None else (0.0, 0.0)
        self._at, self._arrived = array("d", [at]), array("d", [arrived])
        if absent_at is not None:
            self._at.insert(0, absent_at)
            self._arrived.insert(0, 0.0)
        self._redelivered = count(queue.stats, "redeliver")
        self.readings: tuple[FlowReading, ...] = (FlowReading(at, arrived, left),)
        self.uncounted_at: float | None = None
        self.redelivered_at: float | None = None

    def hold(self, at: float) -> None:
        """Note that nothing has changed until `at`."""
        last = self.readings[-1]
        if at > last.at:
            self._put(last._replace(at=at))

    def add(self, at: float, queue: Queue) -> bool:
        """Add a reading. Returns False, and changes nothing, if a counter has restarted."""
        last, left = self.readings[-1], departures(queue)
        arrived, redelivered = count(queue.stats, "publish") + self._extra, count(queue.stats, "redeliver")
        if arrived < last.arrived or left < last.left or redelivered < self._redelivered:
            return False
        if redelivered > self._redelivered:
            self._redelivered, self.redelivered_at = redelivered, at
        if queue.messages is not None:
            arrived = self._balance(FlowReading(at, arrived, left), queue.messages)
        self._put(FlowReading(at, arrived, left))
        return True

    def backlog(self) -> tuple[float, float]:
        """Return how many messages are in the queue: lower and upper bound."""
        last, (low, high) = self.readings[-1], self._gone
        return max(0.0, last.arrived - last.left - high), max(0.0, last.arrived - last.left - low)

    def drain_seconds(self) -> float | None:
        """Return the seconds until the queue is empty at the present rate; None if it does not drain."""
        first, last = self.readings[0], self.readings[-1]
        fallen = (last.left - first.left) - (last.arrived - first.arrived)
        backlog = sum(self.backlog()) / 2
        if fallen <= max(1.0, sqrt(last.left - first.left)) or backlog <= 0:
            return None
        return backlog * (last.at - first.at) / fallen

    def head(self) -> HeadArrival:
        """Return when the oldest message arrived, as of the latest reading, provided that there is one."""
        last, (low, high) = self.readings[-1], self._gone
        slow, fast, spread = self._departing()
        after: float | None = last.at
        before = float("-inf")
        spreads: dict[int, float] = {}
        # The counters are up to one refresh old. What has left since then is estimated from the rate.
        for stale in (0.0, self._delay):
            least, most = (1 - _CHANGE) * slow * stale, (1 + _CHANGE) * fast * stale
            least -= min(least, _DEVIATIONS * sqrt(spread * least))
            most += _DEVIATIONS * sqrt(spread * most)
            first, _ = self._arrival(last.left + low + 1 + least, spreads)
            _, second = self._arrival(last.left + high + 1 + most, spreads)
            after = None if after is None or first is None else min(after, first - stale)
            before = max(before, second - stale)
        return HeadArrival(after, min(before, last.at))

    def _put(self, reading: FlowReading) -> None:
        self.readings = (*self.readings[1 - _READINGS :], reading)
        times, amounts = self._at, self._arrived
        if len(times) > 1 and amounts[-1] == amounts[-2] == reading.arrived:
            times[-1] = reading.at
        else:
            times.append(reading.at)
            amounts.append(reading.arrived)
            if len(times) > POINTS:
                self._thin()

    def _balance(self, now: FlowReading, messages: int) -> float:
        """Reconcile the message count with the counters. Returns the cumulative arrivals.

        The count was true at some time since the reading that is one refresh older.
        """
        index = len(self.readings) - 1
        while index > 0 and now.at - self.readings[index].at < _COUNT_OLDER:
            index -= 1
        recent = (*self.readings[index:], now)
        nets = [it.arrived - it.left - messages for it in recent]
        moved = max(now.arrived - recent[0].arrived, now.left - recent[0].left)
        low, high = min(nets) - _SKEW * moved, max(nets) + _SKEW * moved
        mine = self._gone
        if len(self.readings) == 1 and mine != (0.0, 0.0):
            # Counters since the queue was declared balance with its messages, unless they restarted.
            self._gone = (0.0, 0.0) if low <= 0 <= high and now.arrived > 0 else (low, high)
            return now.arrived
        tolerance = _UNCOUNTED + _UNCOUNTED_SHARE * moved
        if low > mine[1] + tolerance or (messages == 0 and low > mine[1] + 1):
            # More is gone than was counted.
            self.uncounted_at, self._gone = now.at, (low, high)
        elif high < mine[0] - (tolerance if now.arrived > recent[0].arrived else 0):
            # More came than was published to the queue by clients: dead letters, for example.
            more = round((sum(mine) - low - high) / 2)
            self._extra += more
            self._delay = 2 * REFRESH
            return now.arrived + more
        elif low > mine[1]:
            self._gone = (mine[1], low)
        elif high < mine[0]:
            self._gone = (high, mine[0])
        else:
            self._gone = (max(mine[0], low), min(mine[1], high))
        return now.arrived

    def _departing(self) -> tuple[float, float, float]:
        """Return the rate at which messages leave, lower and higher, and its dispersion.

        The rate is that of the latest interval, and the mean of several.
        """
        readings = self.readings
        last = readings[-1]
        if len(readings) < 2:
            return 0.0, 0.0, 0.0
        first, other = readings[0], readings[-2]
        mean = (last.left - first.left) / (last.at - first.at)
        latest = (last.left - other.left) / (last.at - other.at)
        each = [(later.left - one.left, later.at - one.at) for one, later in pairwise(readings)]
        return min(mean, latest), max(mean, latest), _dispersion(each)

    def _arrival(self, number: float, spreads: dict[int, float]) -> tuple[float | None, float]:
        """Return the time of the reading before and after the arrival of a message, closer if the flow is steady.

        Args:
            number: of the message.
            spreads: dispersion of the arrivals around an interval, if known; adds to it.
        """
        times, amounts = self._at, self._arrived
        place = bisect_left(amounts, number)
        if place == len(times):
            return self._to_come(number)
        if place == 0:
            return None, times[0]
        start, end, base = times[place - 1], times[place], amounts[place - 1]
        # A flow that began in the first interval did not fill it.
        began = place == 1 and base == 0
        first, end_of_few = max(1, place - _NEIGHBOURS) + began, min(len(times), place + _NEIGHBOURS + 1)
        if end_of_few - first < _NEIGHBOURS:
            return start, end
        spread = spreads.get(place)
        if spread is None:
            few = range(first, end_of_few)
            spread = _dispersion([(amounts[it] - amounts[it - 1], times[it] - times[it - 1]) for it in few])
            spreads[place] = spread
        arrived, span = amounts[place] - base, end - start
        if began:
            last = end_of_few - 1
            span = min(span, arrived * (times[last] - end) / max(1.0, amounts[last] - amounts[place]))
        share = min(1.0, max(0.0, (number - base - 0.5) / arrived))
        middle = end - (1 - share) * span
        apart = _JITTER + _DRIFT * (self.readings[-1].at - start)
        apart += _DEVIATIONS * span * sqrt(spread * (1 - share) * (1 if began else share) / (arrived + 1))
        return max(start, middle - apart), min(end, middle + apart)

    def _to_come(self, number: float) -> tuple[float, float]:
        """Return when a message arrives that was not counted yet, from the present rate."""
        first, last = self.readings[-2:][0], self.readings[-1]
        rate = (last.arrived - first.arrived) / (last.at - first.at) if last.at > first.at else 0.0
        due = last.at + (number - last.arrived) / rate if rate > 0 else float("inf")
        return last.at, due

    def _thin(self) -> None:
        """Drop the points before the oldest message, and every second of the oldest if that is not enough."""
        gone = max(0, bisect_left(self._arrived, self.readings[-1].left + self._gone[0] + 1) - 2)
        del self._at[:gone], self._arrived[:gone]
        if len(self._at) > POINTS - _COARSE // 2:
            del self._at[1:_COARSE:2], self._arrived[1:_COARSE:2]


def _dispersion(intervals: Sequence[tuple[float, float]]) -> float:
    """Return how unevenly messages come: variance by mean of the messages of some intervals; 1 if they are independent.

    Args:
        intervals: messages and seconds of each.
    """
    messages = seconds = found = 0.0
    for amount, length in intervals:
        messages += amount
        seconds += length
    if messages <= 0 or len(intervals) < 2:
        return 1.0
    rate = messages / seconds
    for amount, length in intervals:
        found += (amount - rate * length) ** 2 / length
    return max(_LEAST_DISPERSION, found / rate / (len(intervals) - 1))

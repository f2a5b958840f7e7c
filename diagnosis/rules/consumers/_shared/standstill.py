"""The law of a standstill: messages are delivered and not settled for longer than their handling takes.

Pure functions over the readings of one queue or channel. A delivery is settled when it is acknowledged, rejected or
requeued; then the number of unacknowledged messages falls. Durations come from readings. The broker renews `idle_since`
of a channel at any activity, and once a minute without any (seen on 3.10.8 and 4.3.6). So the earliest one of all
readings without a change counts, and only if it lengthens what was seen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from ackscope.snapshot import Channel, Overview, Queue
from diagnosis.series import REFRESH, count, delta, grows_at_once, span, steps, stretch
from diagnosis.thresholds.consumers import ConsumerThresholds
from diagnosis.window import Series, Timestamped

Holder = TypeVar("Holder", Queue, Channel)

_SLACK = 0.1
"""Share by which two numbers of one object may differ, because the broker refreshes them at different moments."""
_SLACK_MESSAGES = 2
_MANY_JOBS, _QUICK_JOB = 20, 1.0
"""Acknowledged messages, and seconds for each, that show the usual time of a handler with a prefetch of 1."""
_STEPS = 3
"""Least rises between readings that are a growth: what fills at once shows in two, because its counters are late."""
_LATEST, _FAR_APART = 5, 12.0
"""Readings that are compared with a batch of acknowledgements, and seconds from which on one fits between two."""


def refreshed(overviews: Series[Overview], stalled: Series[Queue]) -> bool:
    """Return whether the broker refreshes its statistics; if it does not, every consumer looks stalled."""
    totals = [seen.value for seen in overviews if seen.at.mono >= stalled[0].at.mono]
    ready_counts = {seen.value.messages_ready for seen in stalled}
    moved = len(totals) > 1 and totals[0].stats != totals[-1].stats
    return moved or delta(stalled, "publish") > 0 or len(ready_counts) > 1


def held(holder: Queue | Channel) -> int:
    """Return the unacknowledged messages of a queue or channel; absent is 0."""
    return holder.messages_unacked or 0


def ready(queue: Queue) -> int:
    """Return the messages of a queue that wait for a consumer; absent is 0."""
    return queue.messages_ready or 0


def nothing_settled(older: Timestamped[Holder], newer: Timestamped[Holder]) -> bool:
    """Return whether messages were held, and none was acknowledged or redelivered."""
    return bool(held(older.value)) and delta((older, newer), "ack") == 0 and delta((older, newer), "redeliver") == 0


def unsettled(series: Series[Holder]) -> Series[Holder]:
    """Return the longest tail in which nothing was settled; only its last reading if deliveries were rejected."""
    tail = stretch(series, nothing_settled)
    if len(tail) < 2:
        return tail
    delivered, gained = delta(tail, "deliver", "get"), held(tail[-1].value) - held(tail[0].value)
    stays = gained >= (1 - _SLACK) * delivered - _SLACK_MESSAGES * (delivered > 0)
    return tail if stays and gained >= 0 else tail[-1:]


def longer_than_jobs(need: float, usual: float, limits: ConsumerThresholds) -> float:
    """Return the seconds after which a standstill is urgent: `need`, or longer where jobs take long.

    Args:
        need: seconds without regard to the jobs.
        usual: seconds of the longest job that was seen; 0 if none was.
        limits: thresholds of the consumers of this queue.
    """
    return max(need, min(limits.stuck_patience * usual, limits.stuck_long_job))


def handling_time(series: Series[Holder], stalled: Series[Holder]) -> float:
    """Return the longest seconds between two acknowledgements before the stall; 0 if none was seen.

    A client that acknowledges in batches has long intervals between them, and short ones on average.
    """
    before = series[: len(series) - len(stalled) + 1]
    acked = delta(before, "ack")
    if acked <= 0:
        return 0.0
    longest, since = 0.0, before[0].at
    for older, newer in pairwise(before):
        if delta((older, newer), "ack") > 0:
            longest = max(longest, older.at.since(since))
            since = newer.at
    return max(longest, span(before) / acked)


def jobs_were_quick(series: Series[Queue], stalled: Series[Queue]) -> bool:
    """Return whether many messages were acknowledged before a standstill, each in less than a second."""
    many = count(stalled[0].value.stats, "ack") >= _MANY_JOBS
    return many and 0 < handling_time(series, stalled) < _QUICK_JOB


def most_held(series: Series[Holder], stalled: Series[Holder]) -> int:
    """Return the most unacknowledged messages before the stall, while others were acknowledged; 0 if none was seen."""
    before = series[: len(series) - len(stalled) + 1]
    return max((held(seen.value) for seen in before), default=0) if delta(before, "ack") > 0 else 0


def never_falls(series: Series[Holder], size: Callable[[Holder], int]) -> Series[Holder]:
    """Return the longest tail in which a number never falls below an earlier one, apart from a small slack."""
    if not series:
        return ()
    start, floor = len(series) - 1, size(series[-1].value)
    while start > 0 and size(series[start - 1].value) <= floor * (1 + _SLACK) + _SLACK_MESSAGES:
        start -= 1
        floor = min(floor, size(series[start].value))
    return series[start:]


def rose_step_by_step(series: Series[Holder], stalled: Series[Holder]) -> bool:
    """Return whether the unacknowledged messages rose step by step while others were acknowledged, up to the stall.

    Consumers that stop at once fill up while nothing is acknowledged, or within the interval in which they stopped.
    """
    before = never_falls(series[: len(series) - len(stalled) + 1], held)
    steps_up = [
        held(newer.value) - held(older.value)
        for older, newer in pairwise(before)
        if held(newer.value) > held(older.value) and delta((older, newer), "ack") > 0
    ]
    gained = held(before[-1].value) - held(before[0].value) if before else 0
    return len(steps_up) >= _STEPS and 2 * (sum(steps_up) - max(steps_up)) >= gained


@dataclass(frozen=True, slots=True)
class UnsettledGrowth:
    """Unacknowledged messages that only grow while others are acknowledged.

    Attributes:
        series: the readings during which they grew.
        grown: how many more are held at the end.
        acked, delivered: messages during that time.
    """

    series: Series[Queue]
    grown: int
    acked: int
    delivered: int

    @property
    def seconds(self) -> float:
        """How long it was seen."""
        return span(self.series)

    @property
    def rises(self) -> int:
        """How many readings are higher than the one before."""
        return sum(held(newer.value) > held(older.value) for older, newer in pairwise(self.series))


def partial_standstill(history: Series[Queue], interval: float, *, counted: bool = True) -> UnsettledGrowth | None:
    """Return the growth of what a queue's consumers hold while acknowledgements continue; None if it does not grow.

    A queue whose traffic rises also holds more. There the time for which messages are held stays the same: by Little's
    law, unacknowledged messages divided by acknowledgements per second. A consumer that gets a burst holds more at
    once, and no more after that. The counters must show the growth, too: the number of messages is read at another
    moment than they, and a moment in which much is held is no growth. Nor do messages count as held for longer when all
    that is held is handled before the broker refreshes its counters once. A consumer that acknowledges in batches holds
    between none and a batch: readings that are as far apart as its acknowledgements see that rise slowly.

    Args:
        history: readings of the queue.
        interval: seconds of the steps in which acknowledgements must continue.
        counted: whether the broker counts the deliveries to all its consumers.
    """
    series = _since_lowest(never_falls(history, held))
    pairs = steps(series, interval)
    acked, delivered = delta(series, "ack"), delta(series, "deliver")
    grown = _grown(series, counted=counted)
    if not pairs or acked <= 0 or grown < max(5, 0.02 * delivered) or delta(series, "redeliver") > 0.1 * delivered:
        return None
    if sum(delta(pair, "ack") > 0 for pair in pairs) < 0.7 * len(pairs):
        return None
    # One look has no more than two readings, so that it has one rise.
    if len(history) > 2 and grows_at_once([held(seen.value) for seen in series]):
        return None
    if held(series[-1].value) <= _settled_between(series):
        return None
    middle = series[0].at.mono + span(series) / 2
    first = tuple(seen for seen in series if seen.at.mono <= middle)
    if len(series) > 2:
        first = series[: max(2, len(first))]
    second = series[len(first) - 1 :]
    if _grown(second, counted=counted) < 0.25 * grown:
        return None
    if len(first) > 1:
        longer = _hold(second) >= 1.3 * _hold(first) and held(series[-1].value) >= REFRESH * _rate(second, "ack")
        leaks = _rate(second, "deliver") <= 1.1 * _rate(first, "deliver") and grown >= 0.05 * delivered
    else:
        longer, leaks = False, _leaked_before(series[-1].value, grown, delivered)
    return UnsettledGrowth(series, grown, acked, delivered) if longer or leaks else None


def _settled_between(series: Series[Queue]) -> int:
    """Return the most messages that were acknowledged between two of the latest readings, if these are far apart."""
    pairs = (pair for pair in pairwise(series[-_LATEST:]) if span(pair) > _FAR_APART)
    return max((delta(pair, "ack") for pair in pairs), default=0)


def _grown(series: Series[Queue], *, counted: bool) -> int:
    """Return how many more messages are held at the end, by their number and by the counters: the smaller one.

    What is held grows by the deliveries that are neither acknowledged nor of returned messages. Where
    not all deliveries are counted, only the number shows it.
    """
    if not series:
        return 0
    by_number = held(series[-1].value) - held(series[0].value)
    by_counters = delta(series, "deliver", "get") - delta(series, "ack", "redeliver")
    return min(by_number, by_counters) if counted else by_number


def _since_lowest(series: Series[Queue]) -> Series[Queue]:
    """Return the readings since the last one that holds least: before that, nothing grew."""
    lowest = min((held(seen.value) for seen in series), default=0)
    start = max((place for place, seen in enumerate(series) if held(seen.value) == lowest), default=0)
    return series[start:]


def _leaked_before(queue: Queue, grown: int, delivered: int) -> bool:
    """Return whether, of all deliveries so far, a similar share is still held as of those between two readings.

    Two readings alone show no more than a fluctuation.
    """
    share = grown / delivered if delivered else 0.0
    return share >= 0.05 and held(queue) >= 0.5 * share * (queue.stats.deliver or 0)


def _rate(series: Series[Queue], counter: str) -> float:
    seconds = span(series)
    return delta(series, counter) / seconds if seconds else 0.0


def _hold(series: Series[Queue]) -> float:
    """Return the mean seconds for which a message is held; infinite if none is acknowledged."""
    acked = _rate(series, "ack")
    return sum(held(seen.value) for seen in series) / len(series) / acked if acked else float("inf")


def unmoved(older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
    """Return whether a channel got no message and settled none."""
    moved = delta((older, newer), "ack", "deliver", "redeliver")
    return moved == 0 and held(older.value) == held(newer.value)


def idle_since(series: Series[Channel]) -> float | None:
    """Return since when a channel is idle, by the broker's clock; None if it is busy or that is unknown.

    Args:
        series: readings between which nothing moved on it.
    """
    if not series or series[-1].value.idle_since is None:
        return None
    return min(seen.value.idle_since for seen in series if seen.value.idle_since is not None)


def exceeds(series: Series[Channel], allowed: Callable[[Channel], int]) -> Series[Channel]:
    """Return the longest tail in which a channel holds more than its consumers may; () if it does not now."""
    if not series or held(series[-1].value) <= allowed(series[-1].value):
        return ()
    return stretch(series, lambda older, _newer: held(older.value) > allowed(older.value))


def left_without_consumer(series: Series[Channel]) -> Series[Channel]:
    """Return the longest tail in which a channel without a consumer holds messages and settles none of them."""
    if not series or series[-1].value.consumer_count != 0 or not held(series[-1].value):
        return ()

    def _left(older: Timestamped[Channel], newer: Timestamped[Channel]) -> bool:
        return (
            older.value.consumer_count == 0 and nothing_settled(older, newer) and held(newer.value) >= held(older.value)
        )

    return stretch(series, _left)

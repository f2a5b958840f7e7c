"""Age of every queue: of its oldest message, and of the messages that left it recently. Needs no timestamps.

`QueueAges` follows the queues of one cluster over its snapshots; `diagnosis.queue_flow` does the arithmetic. Bounds
assume that messages leave in the order in which they came. Where that is not so, the lower bound still holds, and the
upper bound is unknown.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ackscope.clock import Instant
from ackscope.snapshot import Queue, Snapshot
from diagnosis.queue_flow import HeadArrival, QueueFlow
from diagnosis.series import REFRESH

QueueKey = tuple[str, str]

STREAM = "stream"
"""The messages of a stream stay after they were consumed: it has no oldest message that waits."""
NO_STATISTICS = "no_statistics"
"""The broker reports no message counters of the queue."""
REFUSED = "refused"
"""Messages that the queue refuses at its limit are counted as published."""
PRIORITIES = "priorities"
REDELIVERED = "redelivered"
"""Messages were redelivered after the oldest one by count arrived, so an older one may be left."""
EXPIRED = "expired"
"""Messages may have left by expiry recently, which is not processing."""
FIRST_MINUTES = "first_minutes"
"""The oldest message arrived before the first reading."""
RESTARTED = "counters_restarted"
"""The oldest message arrived before a counter restarted."""

RECENT_SECONDS = 60.0
"""Seconds over which the sojourn times of messages that left are taken."""

_SETTLED = 3
"""Readings without a change after which the age of a queue needs no further look."""

_COUNTED_AT_LIMIT = ("reject-publish", "reject-publish-dlx")


class Departed(NamedTuple):
    """Messages that left between two readings, and the bounds of their sojourn time in seconds.

    Attributes:
        longest: None if unknown.
    """

    at: float
    messages: float
    shortest: float
    longest: float | None


class Bounds(NamedTuple):
    """A duration in seconds between two bounds; None if a bound is unknown."""

    lower: float | None = None
    upper: float | None = None


class QueueAge(NamedTuple):
    """What is known of the age of one queue.

    Attributes:
        head: when its oldest message arrived; None if the queue is empty, or if that is unknown.
        drain_seconds: time until it is empty at the present rate, as of the reading; None if it does not drain.
        departed: what left recently, oldest first.
        reasons: why a bound is unknown, or what it does not include.
    """

    head: HeadArrival | None = None
    drain_seconds: float | None = None
    departed: tuple[Departed, ...] = ()
    reasons: tuple[str, ...] = ()

    def head_age(self, at: Instant) -> Bounds:
        """Return the age of the oldest message at `at`, the time of the latest reading."""
        if self.head is None:
            return Bounds()
        after, before = self.head
        return Bounds(max(0.0, at.mono - before), None if after is None else max(0.0, at.mono - after))

    def sojourn(self, share: float, at: Instant) -> Bounds:
        """Return a quantile of the time from publish to departure of messages that left in the last minute."""
        recently = [it for it in self.departed if at.mono - it.at <= RECENT_SECONDS]
        unknown = float("inf")
        lower = _quantile([(it.shortest, it.messages) for it in recently], share)
        upper = _quantile([(unknown if it.longest is None else it.longest, it.messages) for it in recently], share)
        return Bounds(lower, None if upper == unknown else upper)


UNKNOWN = QueueAge()


class _Followed:
    """One queue and its flow.

    Attributes:
        lost: reason why there is no history before the first reading of the flow.
        settled: number of readings since the latest change.
    """

    __slots__ = ("flow", "lost", "queue", "settled")

    def __init__(self, queue: Queue, flow: QueueFlow, lost: str) -> None:
        self.queue, self.flow, self.lost, self.settled = queue, flow, lost, 0


class QueueAges:
    """Follows the queues of one cluster. Not thread-safe, but what `add` returns is not changed afterwards.

    Memory is bounded: `diagnosis.queue_flow.POINTS` points a queue. An unchanged queue costs one comparison.
    """

    def __init__(self) -> None:
        self._queues: Mapping[QueueKey, _Followed] = {}
        self._ages: Mapping[QueueKey, QueueAge] = {}
        self._at: float | None = None

    def add(self, snapshot: Snapshot) -> Mapping[QueueKey, QueueAge]:
        """Add a snapshot, whose unchanged queues are the objects of the previous one. Returns the age by queue."""
        part = snapshot.queues
        if part.value is None or part.at is None or part.at.mono == self._at:
            return self._ages
        read = snapshot.overview.value is None or snapshot.overview.value.statistics is not False
        statistics = read or any(name.startswith("message_stats.") for name in part.origins)
        before, self._at = self._at, part.at.mono
        queues: dict[QueueKey, _Followed] = {}
        ages: dict[QueueKey, QueueAge] = {}
        for queue in part.value:
            key = queue.key
            known = self._queues.get(key)
            if known is not None and known.queue is queue and known.settled >= _SETTLED:
                queues[key], ages[key] = known, self._ages[key]
            elif queue.type == "stream" or not statistics or queue.messages is None or not queue.settings_known:
                ages[key] = QueueAge(reasons=(STREAM if queue.type == "stream" else NO_STATISTICS,))
            else:
                queues[key] = _followed(queue, known, read_at(queue, part.at).mono, before)
                ages[key] = _age(queues[key], self._ages.get(key, UNKNOWN))
        self._queues, self._ages = queues, ages
        return ages


def read_at(queue: Queue, at: Instant) -> Instant:
    """Return when the counters of a queue were read, from the time at which the list was."""
    return at if queue.details_at is None else queue.details_at


def _followed(queue: Queue, known: _Followed | None, at: float, before: float | None) -> _Followed:
    """Add a reading of one queue at `at`; `before` is the time of the previous reading of all queues."""
    apart = queue.details_at is not None
    if known is None:
        # Statistics that are read apart from the list may be read long after the queue was declared.
        return _Followed(queue, QueueFlow(at, queue, None if apart else before), FIRST_MINUTES)
    if known.queue is queue:
        known.settled += 1
        known.flow.hold(at)
        return known
    if before is not None and not apart:
        known.flow.hold(before)
    if at > known.flow.readings[-1].at and not known.flow.add(at, queue):
        return _Followed(queue, QueueFlow(at, queue), RESTARTED)
    known.queue, known.settled = queue, 0
    return known


def _age(followed: _Followed, last: QueueAge) -> QueueAge:
    flow, queue = followed.flow, followed.queue
    now = flow.readings[-1]
    if flow.uncounted_at is not None and queue.setting("overflow") in _COUNTED_AT_LIMIT:
        return QueueAge(reasons=(REFUSED,))
    if not queue.messages or flow.backlog()[1] <= 0:
        return QueueAge(departed=_departed(flow, None, last))
    reasons: list[str] = []
    head = flow.head()
    if head.after is None:
        reasons.append(followed.lost)
    if queue.setting("max-priority"):
        reasons.append(PRIORITIES)
        head = head._replace(after=None)
    redelivered = flow.redelivered_at
    if redelivered is not None and (head.after is None or head.after < redelivered):
        reasons.append(REDELIVERED)
        head = head._replace(after=None)
    if flow.uncounted_at is not None and now.at - flow.uncounted_at <= RECENT_SECONDS and queue.setting("message-ttl"):
        reasons.append(EXPIRED)
    return QueueAge(head, flow.drain_seconds(), _departed(flow, head, last), tuple(reasons))


def _departed(flow: QueueFlow, head: HeadArrival | None, last: QueueAge) -> tuple[Departed, ...]:
    """Return what left recently. The message that leaves is the oldest: its sojourn time is the age that it had.

    Args:
        flow: with its latest reading.
        head: the oldest message now; None if the queue is empty.
        last: what was known at the reading before.
    """
    if len(flow.readings) < 2:
        return ()
    before, now = flow.readings[-2:]
    recent = tuple(it for it in last.departed if now.at - it.at < RECENT_SECONDS)
    if now.left <= before.left or (recent and recent[-1].at == now.at):
        return recent
    if last.head is None:
        # Nothing was left of what came before.
        shortest, longest = 0.0, None if last.reasons else now.at - before.at + REFRESH
    elif head is None:
        shortest, longest = 0.0, None if last.head.after is None else now.at - last.head.after
    else:
        shortest = max(0.0, min(now.at - head.before, before.at - last.head.before))
        unknown = last.head.after is None or head.after is None
        longest = None if unknown else max(now.at - (head.after or 0), before.at - (last.head.after or 0))
    return (*recent, Departed(now.at, now.left - before.left, shortest, longest))


def _quantile(values: list[tuple[float, float]], share: float) -> float | None:
    """Return a quantile of values with weights; None without values."""
    values.sort()
    rest = share * sum(weight for _, weight in values)
    for value, weight in values:
        rest -= weight
        if rest <= 0:
            return value
    return None

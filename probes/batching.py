"""Estimates from bursts of acks how a broker writes to disk before it confirms.

A broker that must sync its disk before it confirms collects the messages that arrive during one sync, writes them with
the next sync, and confirms them together. A client sees four effects:

* Acks arrive in bursts that are one sync time apart.
* Each burst confirms the messages that were sent in that time (rate x interval).
* Within a burst, a message that was sent earlier waited longer by the same time (slope 1).
* Even the last message of a burst waited for a whole sync.

A sync time is reported only if all four are observed.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from statistics import median
from typing import NamedTuple

from ackscope.records import Batching, BatchingKind
from probes.bursts import Burst
from probes.identity import PERSISTENT
from probes.self_error import duration

LEAST_BURSTS = 30
"""Minimum number of bursts for a conclusion."""

LEAST_INTERVAL = 0.02
"""Minimum seconds between bursts to report a sync time. Busy machines and healthy disks show shorter intervals."""

_MOST, _AT_ONCE = 4000, 600
_ALIKE = 2.0
_SHARE = 0.6
_SLOPE = 0.25
_SCATTER = 0.3
_FLOOR = 0.5
_FITS = 0.3
_CLEAR = 3


def syncs_first(queue_type: str, delivery_mode: int, broker: str) -> bool:
    """Whether this broker, such as "RabbitMQ 3.10.8", calls fsync before it confirms; False if unknown."""
    name, _, version = broker.partition(" ")
    parts = version.split(".")[:2]
    if name != "RabbitMQ" or delivery_mode != PERSISTENT or len(parts) < 2 or not all(map(str.isdecimal, parts)):
        return False
    # Classic queues: https://github.com/rabbitmq/rabbitmq-server/pull/8507 removed their last fsync before a confirm.
    return queue_type == "quorum" or (queue_type == "classic" and tuple(map(int, parts)) < (3, 13))


class BurstWindow:
    """The latest bursts of one stream.

    Args:
        span: length of the window in seconds; None for the whole run, of which the last `_MOST` bursts are stored.
    """

    def __init__(self, span: float | None) -> None:
        self._span = span
        self._bursts: deque[Burst] = deque(maxlen=_MOST)

    def add(self, burst: Burst) -> None:
        """Add a burst."""
        self._bursts.append(burst)

    def recent(self, now: float) -> list[Burst]:
        """Return the latest bursts at `now` (monotonic seconds). They are few enough not to delay the probe."""
        while self._span is not None and self._bursts and self._bursts[0].at < now - self._span:
            self._bursts.popleft()
        return list(islice(reversed(self._bursts), _AT_ONCE))[::-1]

    def whole(self) -> list[Burst]:
        """Return all stored bursts."""
        return list(self._bursts)


class _Shape(NamedTuple):
    """Measures of a sequence of bursts.

    Attributes:
        interval: median interval of the similar bursts, in seconds.
        group: median number of messages of the similar bursts.
        floor: median of their shortest latencies, in seconds; None if no burst has one.
        slope: median of their slopes (`Burst.slope`); None if no burst has one.
        alike: number of similar bursts, whose interval is within a factor of `_ALIKE` of the message-weighted median.
        share: share of all messages that are in similar bursts.
        scatter: median deviation of the intervals from their median, as a share of it.
        fit: messages in similar bursts, divided by the number scheduled in that time.
    """

    interval: float
    group: float
    floor: float | None
    slope: float | None
    alike: int
    share: float
    scatter: float
    fit: float


def estimate(
    bursts: Sequence[Burst], *, rate: float, fsync: bool, writes: bool = True, own_error: float | None = None
) -> Batching:
    """Estimate how confirms are batched from the bursts of one stream.

    Args:
        bursts: bursts in order of time.
        rate: scheduled messages per second.
        fsync: whether the broker calls fsync before it confirms these messages; see `syncs_first`.
        writes: whether the broker writes these messages before it confirms them.
        own_error: how late the event loop of the probe wakes up, in seconds. Acks closer together than that are joined.
    """
    timed = [burst for burst in bursts if burst.interval is not None and burst.messages]
    if len(timed) < LEAST_BURSTS:
        because = f"only {len(timed)} bursts of acks; at least {LEAST_BURSTS} are needed"
        return Batching(bursts=len(timed), fsync=fsync, because=because)
    shape = _shape(timed, rate)
    kind, because = _kind(timed, shape, rate, fsync=fsync)
    if kind is BatchingKind.SYNC and (not writes or shape.interval < _CLEAR * (own_error or 0.0)):
        every = f"groups of about {shape.group:.0f} come every {duration(shape.interval)}"
        why = "the probe itself wakes up that late" if writes else "nothing is written on this path before the confirm"
        kind, because = BatchingKind.UNKNOWN, f"{every}, but {why}"
    return Batching(
        kind=kind,
        interval=shape.interval if kind is BatchingKind.SYNC else None,
        floor=shape.floor,
        slope=shape.slope,
        group=shape.group,
        bursts=shape.alike,
        confidence=_confidence(kind, shape),
        fsync=fsync,
        because=because,
    )


def _shape(bursts: Sequence[Burst], rate: float) -> _Shape:
    # Weighted by messages, because one flush may arrive in two bursts, and the small one must count less.
    typical = _weighed_median([(burst.interval or 0.0, burst.messages) for burst in bursts])
    alike = [burst for burst in bursts if typical / _ALIKE <= (burst.interval or 0.0) <= typical * _ALIKE]
    interval = median(burst.interval or 0.0 for burst in alike)
    messages = sum(burst.messages for burst in alike)
    seconds = sum(burst.interval or 0.0 for burst in alike)
    slopes = [burst.slope for burst in alike if burst.slope is not None]
    floors = [burst.least for burst in alike if burst.least is not None]
    return _Shape(
        interval=interval,
        group=median(burst.messages for burst in alike),
        floor=median(floors) if floors else None,
        slope=median(slopes) if slopes else None,
        alike=len(alike),
        share=messages / sum(burst.messages for burst in bursts),
        scatter=median(abs((burst.interval or 0.0) - interval) for burst in alike) / interval if interval else 1.0,
        fit=messages / (rate * seconds) if seconds else 0.0,
    )


def _kind(bursts: Sequence[Burst], shape: _Shape, rate: float, *, fsync: bool) -> tuple[BatchingKind, str]:
    every = f"groups of about {shape.group:.0f} come every {duration(shape.interval)}"
    if sum(burst.full for burst in bursts) > len(bursts) / 2:
        return (
            BatchingKind.WINDOW_LIMITED,
            "the number of unconfirmed messages was at the limit of the probe most of the time",
        )
    if shape.group < 2 or shape.interval < LEAST_INTERVAL:
        return _hardly_any(shape, rate)
    if shape.alike < LEAST_BURSTS:
        return BatchingKind.UNKNOWN, f"{every}, seen {shape.alike} times; at least {LEAST_BURSTS} are needed"
    if shape.share < _SHARE or shape.floor is None:
        return BatchingKind.UNKNOWN, f"{every}, but only {shape.share:.0%} of the messages are in such groups"
    if shape.fit < 1 - _FITS:
        sent = rate * shape.interval
        return (
            BatchingKind.WINDOW_LIMITED,
            f"{every} although {sent:.0f} are sent in that time: the broker limits the unconfirmed messages",
        )
    if shape.scatter > _SCATTER:
        return BatchingKind.UNKNOWN, f"{every}, but too irregularly to be the duration of one operation"
    if shape.slope is None or abs(shape.slope - 1) > _SLOPE or shape.fit > 1 + _FITS:
        return BatchingKind.UNKNOWN, f"{every}, but within a group the waits do not depend on the send times"
    if shape.floor < _FLOOR * shape.interval:
        because = f"{every}, but the last message of a group waits only {duration(shape.floor)}: a timer, or a stall"
        return BatchingKind.UNKNOWN, f"{because} of client or network, not a write that all messages wait for"
    what = "one fsync takes about that long" if fsync else "one write takes about that long; this path does not fsync"
    because = f"{every}, as many as are sent in that time; even the last one waits {duration(shape.floor)}: {what}"
    return BatchingKind.SYNC, because


def _hardly_any(shape: _Shape, rate: float) -> tuple[BatchingKind, str]:
    waits = shape.floor or 0.0
    # A batch that is as short as the time between two messages holds one message, so it cannot be seen at this rate.
    if shape.group < 2 and waits >= LEAST_INTERVAL and 0.2 < rate * waits < 3:
        because = f"each message waits {duration(waits)} and is confirmed alone: at {rate:g}/s batches cannot be seen"
        return BatchingKind.UNKNOWN, f"{because} that short; {max(1, round(5 / waits))}/s would"
    if shape.group < 2:
        return BatchingKind.UNBATCHED, "messages are confirmed one by one, not in groups"
    because = f"groups of about {shape.group:.0f} come every {duration(shape.interval)}"
    return BatchingKind.UNBATCHED, f"{because}: confirms are not grouped for longer than that"


def _confidence(kind: BatchingKind, shape: _Shape) -> float:
    """Return the confidence from 0 to 1. It grows with the number and regularity of bursts and the fit of the model."""
    enough = shape.alike / (shape.alike + LEAST_BURSTS / 3)
    if kind is BatchingKind.UNKNOWN:
        return 0.0
    if kind is not BatchingKind.SYNC:
        return round(enough, 2)
    wrong = abs(1 - (shape.slope or 0.0)) + abs(1 - shape.fit) + shape.scatter
    return round(enough * min(1.0, shape.share + 0.1) * max(0.0, 1 - wrong), 2)


def _weighed_median(weighed: Sequence[tuple[float, int]]) -> float:
    half, seen = sum(weight for _, weight in weighed) / 2, 0
    for value, weight in sorted(weighed):
        seen += weight
        if seen >= half:
            return value
    return 0.0

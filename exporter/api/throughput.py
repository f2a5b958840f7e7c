"""Current throughput and backlog of all application queues, comparable to the baselines of a cluster. Pure.

Only complete sums are reported: a partial sum would look like a drained cluster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.series import last, span
from diagnosis.window import Series, Timestamped, Window
from exporter.api.sparkline_series import counter_value

LEVELS = {"ready": "messages_ready", "unacked": "messages_unacked"}
COUNTERS = {"published": "publish", "delivered": "deliver_get", "acked": "ack", "redelivered": "redeliver"}
"""Measure in the table `baselines` -> counter of a queue."""

_counters = attrgetter(*COUNTERS.values())
_BORN = (0,) * len(COUNTERS)

_SPAN = 50.0
"""Minimum seconds over which a rate is computed; the bands describe the variance of one minute."""


@dataclass(frozen=True, slots=True)
class ClusterTotal:
    """The total of one measure.

    Attributes:
        value: None if it would be incomplete.
        because: why it would be incomplete; "" if `value` is set.
    """

    value: float | None = None
    because: str = ""


def cluster_throughput(window: Window, own: tuple[str, ...]) -> Mapping[str, ClusterTotal]:
    """Return the total of every measure in `LEVELS` and `COUNTERS`; rates are per second.

    Args:
        window: snapshots of the cluster.
        own: prefixes of the probes' queues, which are left out as in the history.
    """
    readings = window.readings("queues")
    if not readings:
        return dict.fromkeys((*LEVELS, *COUNTERS), ClusterTotal(because="the queues have not been read yet"))
    latest = readings[-1]
    queues = [queue for queue in latest.value if not queue.name.startswith(own)]
    return {**{name: _level(queues, field) for name, field in LEVELS.items()}, **_rates(readings, queues)}


def _level(queues: Sequence[Queue], field: str) -> ClusterTotal:
    values = [getattr(queue, field) for queue in queues]
    silent = values.count(None)
    if silent:
        return ClusterTotal(because=f"{silent:,} of {len(queues):,} queues do not report it")
    return ClusterTotal(float(sum(values)))


def _rates(readings: Series[Sequence[Queue]], queues: Sequence[Queue]) -> dict[str, ClusterTotal]:
    latest, oldest, recent = readings[-1], readings[0], last(readings, _SPAN)
    # A queue without a consumer count has totals only: its details were never read. After that a missing counter is 0.
    unread = sum(queue.consumers is None for queue in queues)
    why = ""
    if span(recent) < _SPAN:
        why = "the queues have been watched for less than a minute"
    elif unread:
        why = f"the details of {unread:,} of {len(queues):,} queues are unknown"
    elif queues and all(counter_value(queue.stats, "publish") is None for queue in queues):
        why = "no queue reports message counters"
    if why:
        return dict.fromkeys(COUNTERS, ClusterTotal(because=why))
    sums = dict.fromkeys(COUNTERS, 0.0)
    again = _add(sums, queues, latest.at, recent[0])
    if again:
        # Details are read in rotation. Those of these queues were not read since `recent`, so use a longer interval.
        lost = _add(sums, again, latest.at, oldest)
        if lost:
            why = f"the details of {len(lost):,} of {len(queues):,} queues are read less often than every 10 minutes"
            return dict.fromkeys(COUNTERS, ClusterTotal(because=why))
    return {name: ClusterTotal(value) for name, value in sums.items()}


def _add(
    sums: dict[str, float], queues: Sequence[Queue], at: Instant, then: Timestamped[Sequence[Queue]]
) -> list[Queue]:
    """Add the rates since `then` to `sums`. Returns the queues that have not been read again since."""
    held, here = set(map(id, then.value)), set(map(id, queues))
    known = {queue.key: queue for queue in then.value if id(queue) not in here}
    again, grown = [], [0.0] * len(COUNTERS)
    for queue in queues:
        if id(queue) in held:
            if queue.details_at is not None:
                again.append(queue)
            continue
        before = known.get(queue.key)
        started = then.at if before is None else before.details_at or then.at
        seconds = (queue.details_at or at).since(started)
        if seconds <= 0:
            again.append(queue)
            continue
        counted = _counters(before.stats) if before else _BORN
        for place, (old, new) in enumerate(zip(counted, _counters(queue.stats), strict=True)):
            if new:
                # A counter that fell was reset, and one of a new queue started at 0: the increase is the new value.
                grown[place] += (new - (old or 0) if new >= (old or 0) else new) / seconds
    for name, value in zip(COUNTERS, grown, strict=True):
        sums[name] += value
    return again

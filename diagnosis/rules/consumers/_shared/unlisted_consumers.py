"""Queues whose consumers the broker does not list, because it keeps no statistics: judged by their figures alone.

Neither prefetch nor channels are known. What shows that consumers hold all they may is that messages wait and none is
delivered. Consumers of AMQP 1.0 and MQTT count in no queue, so a queue is judged only if its counters account for what
is held. It is stuck only if no AMQP 1.0 client took messages of this type of queue, or if as many messages came as the
queue gained. It is slow if messages wait all the time and each is held for longer than a network takes.
"""

from collections.abc import Iterator

from ackscope.second_source import NativeTotals
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.hold_time import hold_time
from diagnosis.purpose import MQTT_SESSIONS
from diagnosis.rules.consumers._shared.consumer_capacity import (
    SaturatedQueue,
    growing_readings,
    outpaced,
    saturated,
)
from diagnosis.rules.consumers._shared.stalled_consumers import Stall
from diagnosis.rules.consumers._shared.standstill import (
    handling_time,
    held,
    jobs_were_quick,
    longer_than_jobs,
    most_held,
    ready,
    refreshed,
    rose_step_by_step,
    unsettled,
)
from diagnosis.series import count, delta, last, span, stretch
from diagnosis.unattributed import counted
from diagnosis.window import Series

CLIENT_FAMILIES = ("consumers", "channels")
"""What tells the consumers of a queue."""

_SLACK = 2
"""Messages by which figures that are read together may differ."""
_MORE = 1.5
"""Times what was held before that is more than the batch that a client collects."""
_MANY = 20
"""Messages held by consumers that never acknowledged any from which on they are no first batch."""


def countable(view: View) -> Iterator[Queue]:
    """Yield the queues with unlisted consumers that hold messages which counters of the queue account for."""
    if view.alarms:
        # A connection that also publishes is blocked, and cannot acknowledge.
        return
    for queue in view.queues:
        if view.links(queue):
            continue
        delivered = count(queue.stats, "deliver", "get") - count(queue.stats, "ack")
        known = queue.type in ("classic", "quorum") and not queue.name.startswith(MQTT_SESSIONS)
        if known and queue.consumers and held(queue) and held(queue) <= delivered + _SLACK:
            yield queue


def unlisted_stalls(view: View) -> Iterator[Stall]:
    """Yield the queues whose consumers acknowledge nothing, as far as their figures alone show it."""
    for queue in countable(view):
        stall = None if view.moved(queue, "ack") else _stall(view, queue)
        if stall is not None:
            yield stall


def unlisted_saturation(view: View) -> Iterator[SaturatedQueue]:
    """Yield the queues that grow although their consumers acknowledge, as far as their figures alone show it."""
    for queue in countable(view):
        if not ready(queue) or not view.moved(queue, "ack"):
            continue
        limits, history = view.limits(queue), view.history(queue)
        growing = growing_readings(limits, history)
        work = hold_time(growing)
        if work is None or span(growing) < limits.early or not all(ready(seen.value) for seen in growing[1:]):
            continue
        # Below this, the network may take the time: the prefetch is too small.
        if work.hold > limits.consumers.prefetch_unknown and outpaced(limits, work, growing):
            yield saturated(view, queue, history, growing, work)


def only_counted_clients(view: View, tail: Series[Queue]) -> bool:
    """Return whether clients whose messages count in no queue took none from this one."""
    gained = _size(tail[-1].value) - _size(tail[0].value)
    if (arrived := delta(tail, "publish")) and arrived - gained <= _SLACK:
        return True
    readings = counted(view)
    before = [seen for seen in readings if seen.at.mono <= tail[0].at.mono]
    kind = tail[-1].value.type or ""
    return bool(before) and _delivered(before[-1].value, kind) == _delivered(readings[-1].value, kind)


def _stall(view: View, queue: Queue) -> Stall | None:
    history, limits = view.history(queue), view.limits(queue)
    stalled = stretch(unsettled(history), lambda older, _: bool(older.value.consumers))
    waits = stretch(
        stalled, lambda older, newer: bool(ready(older.value)) and delta((older, newer), "deliver", "get") == 0
    )
    full = bool(ready(queue)) and span(waits) >= limits.consumers.stuck_seen
    if full:
        stalled = waits
    if span(stalled) < limits.consumers.stuck_seen or not refreshed(view.window.readings("overview"), stalled):
        return None
    most, usual = most_held(history, stalled), handling_time(history, stalled)
    if not full and not _takes_more(view, queue, stalled, most):
        return None
    if not only_counted_clients(view, stalled):
        return None
    consumers = queue.consumers or 1
    one_each, were_quick = held(queue) <= consumers, jobs_were_quick(history, stalled)
    never_acked = not queue.stats.ack
    need = max(limits.consumers.stuck_for, 0.0 if usual else limits.consumers.stuck_unknown)
    if not full or one_each:
        need = limits.consumers.stuck_long
    if not full and never_acked:
        need = limits.consumers.stuck_long_job
    need = longer_than_jobs(need, usual, limits.consumers)
    seconds, published = span(stalled), delta(stalled, "publish")
    growing = published > 0 or ready(queue) > ready(stalled[0].value)
    early = seconds < need
    if early and (seconds < limits.early or not full or one_each or not usual or not growing):
        # A long job, a batch and a consumer that has just begun look the same.
        return None
    return Stall(
        queue=queue,
        early=early,
        stuck=(),
        prefetches=(1,) * consumers if one_each else (),
        full=full,
        never_acked=never_acked,
        gathered=full and rose_step_by_step(history, stalled),
        consumers=consumers,
        standbys=consumers - 1 if queue.settings_known and queue.setting("single-active-consumer") else 0,
        whole_queue=True,
        growing=growing,
        published=published,
        seen_seconds=seconds,
        held_seconds=seconds,
        warning_after_seconds=need,
        since=stalled[0].at.wall,
        outlasts_jobs=were_quick and seconds >= limits.consumers.stuck_long_job,
    )


def _takes_more(view: View, queue: Queue, stalled: Series[Queue], most: int) -> bool:
    """Return whether consumers take more and more, and more than any batch that was seen before."""
    if delta(last(stalled, view.limits(queue).interval), "deliver") == 0:
        return False
    return held(queue) > _MORE * most if most else not queue.stats.ack and held(queue) >= _MANY


def _size(queue: Queue) -> int:
    return ready(queue) + held(queue)


def _delivered(totals: NativeTotals, kind: str) -> int:
    """Return what AMQP 1.0 clients were sent of the queues of a type; a type that is absent had none."""
    found = totals.types.get(kind)
    return 0 if found is None else found.delivered or 0

"""Single active consumers that keep a consumer of higher priority waiting.

From 4.0 on, a quorum queue sends its active consumer nothing more once one with a higher priority waits, and activates
that one when the active consumer has settled all its messages. One message that it does not settle stops the queue, far
below its prefetch. Seen on 4.3.6.
Source: `activate_next_consumer` in deps/rabbit/src/rabbit_fifo.erl of rabbitmq-server.
"""

from collections.abc import Iterator

from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import prefetch
from diagnosis.rules.consumers._shared.stalled_consumers import Stall, stalls
from diagnosis.rules.consumers._shared.standstill import handling_time, held, longer_than_jobs, nothing_settled, ready
from diagnosis.series import delta, span, stretch
from diagnosis.window import Timestamped


def successors(view: View, queue: Queue) -> tuple[ConsumerPath, ...]:
    """Return the waiting consumers of a queue whose priority is above that of its single active consumer."""
    links = view.links(queue)
    active = [link.consumer.priority or 0 for link in links if link.consumer.active]
    if len(active) != 1 or queue.type != "quorum":
        return ()
    return tuple(link for link in links if link.consumer.active is False and (link.consumer.priority or 0) > active[0])


def handovers(view: View) -> Iterator[Stall]:
    """Yield the stall of each queue that waits until its active consumer has settled its messages."""
    known = {stall.queue.key for stall in stalls(view)}
    for queue in view.queues:
        held_up = (queue.consumers or 0) > 1 and queue.messages_unacked and queue.messages_ready
        if not held_up or view.moved(queue, "ack") or view.moved(queue, "deliver") or queue.key in known:
            continue
        stall = _stall(view, queue) if successors(view, queue) else None
        if stall is not None:
            yield stall


def _stall(view: View, queue: Queue) -> Stall | None:
    limits, history = view.limits(queue), view.history(queue)
    stopped = stretch(history, _stopped)
    (active,) = (link for link in view.links(queue) if link.consumer.active)
    seconds = span(stopped)
    if seconds < max(limits.consumers.stuck_seen, limits.early) or active.session or active.is_uncounted:
        return None
    usual = handling_time(history, stopped)
    need = limits.consumers.stuck_for if usual else max(limits.consumers.stuck_for, limits.consumers.stuck_unknown)
    if prefetch(view, active) == 1:
        need = limits.consumers.stuck_long
    need = longer_than_jobs(need, usual, limits.consumers)
    standbys = sum(link.consumer.active is False for link in view.links(queue))
    return Stall(
        queue=queue,
        early=seconds < need,
        stuck=(active,),
        prefetches=(prefetch(view, active) or 0,),
        full=False,
        never_acked=active.channel is not None and not active.channel.stats.ack,
        gathered=False,
        consumers=1,
        standbys=standbys,
        whole_queue=True,
        growing=delta(stopped, "publish") > 0,
        published=delta(stopped, "publish"),
        seen_seconds=seconds,
        held_seconds=seconds,
        warning_after_seconds=need,
        since=stopped[0].at.wall,
    )


def _stopped(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    return (
        nothing_settled(older, newer)
        and delta((older, newer), "deliver") == 0
        and min(ready(older.value), ready(newer.value), held(newer.value)) > 0
    )

"""The last readings of queues that were deleted or began to count again, kept while older snapshots are thinned.

What one deletion lost is the difference between two readings: the last one with the queue, and the first one without
it. Of minutes ago, a window has only some readings, so a figure that was taken from them would change with each poll.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ackscope.clock import Instant
from ackscope.snapshot import Queue

MOST = 5_000
"""Maximum number of endings that are kept, the newest ones. Figures of others come from the snapshots that are left."""
READINGS = 4
"""Readings before an ending that are kept, so that the pace of consumers until then stays known, too."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a queue between two readings of the list of queues.

    Attributes:
        readings: the last readings with the queue, oldest first.
        after: the first reading without it, or with the queue of its name whose counters began again.
        successor: that queue; None without one.
        back: the first reading with a queue of its name after one without; None before it.
    """

    readings: tuple[tuple[Instant, Queue], ...]
    after: Instant
    successor: Queue | None
    back: tuple[Instant, Queue] | None = None

    @property
    def queue(self) -> Queue:
        """The queue at its last reading."""
        return self.readings[-1][1]


def endings(readings: Sequence[tuple[Instant, tuple[Queue, ...]]], at: Instant, now: Sequence[Queue]) -> list[Ending]:
    """Return the queues with messages, or made to last, that ended between the last of some readings and a new one.

    Of a virtual host without any queue now, the empty ones as well, so that their number is known.

    Args:
        readings: lists of queues, oldest first.
        at: time of the new reading.
        now: its queues; those that did not change are the same objects as in the last reading.
    """
    if not readings or readings[-1][1] is now:
        return []
    before = readings[-1][1]
    held, known = set(map(id, now)), set(map(id, before))
    changed = [queue for queue in before if id(queue) not in held]
    if not changed:
        return []
    newer = {queue.key: queue for queue in now if id(queue) not in known}
    vhosts = {queue.vhost for queue in now}
    ended = {
        queue.key
        for queue in changed
        if (queue.messages or _is_made_to_last(queue) or queue.vhost not in vhosts)
        and ((new := newer.get(queue.key)) is None or new.stats.began_again(queue.stats))
    }
    if not ended:
        return []
    seen: dict[tuple[str, str], list[tuple[Instant, Queue]]] = {key: [] for key in ended}
    for time, queues in readings[-READINGS:]:
        for queue in queues:
            if queue.key in ended:
                seen[queue.key].append((time, queue))
    return [Ending(tuple(found), at, newer.get(key)) for key, found in seen.items()]


def come_back(
    ended: Sequence[Ending], at: Instant, before: Sequence[Queue], now: Sequence[Queue]
) -> tuple[Ending, ...]:
    """Return endings with the new reading of those queues that were missing until then."""
    missing = {each.queue.key for each in ended if each.successor is None and each.back is None}
    if not missing or before is now:
        return tuple(ended)
    held = set(map(id, before))
    new = {queue.key: queue for queue in now if id(queue) not in held and queue.key in missing}
    return tuple(
        replace(each, back=(at, new[each.queue.key]))
        if each.successor is None and each.back is None and each.queue.key in new
        else each
        for each in ended
    )


def _is_made_to_last(queue: Queue) -> bool:
    return queue.durable is True and not queue.exclusive and not queue.auto_delete and queue.stats.publish is not None

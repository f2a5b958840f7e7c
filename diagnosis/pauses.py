"""Times at which consumers took nothing although messages waited, kept while older snapshots are thinned.

What stands still and goes on is over when somebody looks, and of minutes ago a window has only some readings. So each
pause is recorded while its readings follow one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Queue

MOST = 2_000
"""Maximum number of pauses that are kept, the newest ones."""
LEAST_SECONDS = 9.0
"""Shortest pause: the broker refreshes its statistics every 5 s, so one interval may show no change. Two intervals are
10 s, or a little less as they are read."""
_OPEN_SECONDS = 60.0
"""Seconds after its last reading for which a shorter pause may go on: a large broker is read seldom."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The readings of one queue between which nothing was delivered or settled, while messages waited.

    Attributes:
        begin, end: time of the first and the last of these readings.
        held: unacknowledged messages at the last one.
        ready: messages that waited at the last one.
        stats: counters of the queue meanwhile.
    """

    vhost: str
    name: str
    begin: Instant
    end: Instant
    held: int
    ready: int
    stats: MessageStats

    @property
    def key(self) -> tuple[str, str]:
        """Virtual host and name of the queue."""
        return self.vhost, self.name

    @property
    def seconds(self) -> float:
        """How long it was seen."""
        return self.end.since(self.begin)


def continued(
    known: Sequence[Pause], before: tuple[Instant, Sequence[Queue]], after: tuple[Instant, Sequence[Queue]]
) -> tuple[Pause, ...]:
    """Return the pauses with those that the latest two lists of queues show, in the order of their beginning.

    Args:
        known: pauses until the first of both lists.
        before: time and queues of the first list.
        after: time and queues of the second list.
    """
    older = {queue.key: queue for queue in before[1] if _waits(queue)}
    latest = {each.key: each for each in known}
    found: dict[tuple[tuple[str, str], float], Pause] = {(each.key, each.begin.mono): each for each in known}
    for queue in after[1]:
        if not _waits(queue) or (earlier := older.get(queue.key)) is None:
            continue
        begin, end = earlier.details_at or before[0], queue.details_at or after[0]
        if end.mono <= begin.mono or not _stood_still(earlier, queue):
            continue
        goes_on = latest.get(queue.key)
        if goes_on is not None and goes_on.end.mono == begin.mono:
            begin = goes_on.begin
        found[queue.key, begin.mono] = Pause(
            vhost=queue.vhost,
            name=queue.name,
            begin=begin,
            end=end,
            held=queue.messages_unacked or 0,
            ready=queue.messages_ready or 0,
            stats=queue.stats,
        )
    lasting = (
        each for each in found.values() if each.seconds >= LEAST_SECONDS or after[0].since(each.end) <= _OPEN_SECONDS
    )
    return tuple(sorted(lasting, key=lambda each: each.begin.mono)[-MOST:])


def _waits(queue: Queue) -> bool:
    """Return whether messages wait for consumers that are there, and the broker counts what they take.

    A stream always has messages that are ready.
    """
    attended = bool(queue.consumers) or (queue.consumers is None and bool(queue.messages_unacked))
    return bool(queue.messages_ready) and attended and queue.type != "stream" and queue.stats.deliver_get is not None


def _stood_still(older: Queue, newer: Queue) -> bool:
    """Return whether nothing was delivered, returned or settled between two readings of a queue."""
    before, now = older.stats, newer.stats
    return (before.deliver_get, before.ack, before.redeliver) == (now.deliver_get, now.ack, now.redeliver)

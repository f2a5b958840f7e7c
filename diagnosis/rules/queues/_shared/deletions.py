"""Deletions of queues, as lists of queues show them: a queue is not listed any more, or its counters begin again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ackscope.clock import Instant
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.ledger import levels, settled_after
from diagnosis.purpose import CONSUMED, POLLED
from diagnosis.series import count, delta, restarted, stretch, without_consumers
from diagnosis.window import Series, Timestamped

_STARTING = 30.0
"""Seconds around the start of a node in which the list of queues and their counters prove nothing."""
_PACE_KNOWN = 15.0
"""Seconds from the last reading of a queue to its absence, up to which the pace of its consumers still counts."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """One deletion of a queue.

    Attributes:
        readings: the queue from its declaration, or from the first reading, to its last one; oldest first.
        born: the last reading before them, which was without the queue; None if there is none.
        after: the first reading without it, or with the new queue of its name.
        lost: minimum of messages deleted with it.
    """

    readings: Series[Queue]
    born: Instant | None
    after: Instant
    lost: int

    @property
    def before(self) -> Timestamped[Queue]:
        """The last reading of the queue."""
        return self.readings[-1]


def is_by_expiry(view: View, deletions: Sequence[Deletion]) -> bool:
    """Return whether the setting expires can explain all deletions of a queue: what explains one explains them all."""
    return bool(deletions) and all(unused_before(view, each) is not None for each in deletions)


def unused_before(view: View, deletion: Deletion) -> Series[Queue] | None:
    """Return the last readings without a consumer, if the setting expires can explain the deletion; else None.

    It cannot if the queue was declared, or had a consumer, too shortly before. Publishing to a queue is no use of it.
    Source: https://www.rabbitmq.com/docs/ttl#queue-ttl
    """
    queue = deletion.before.value
    if queue.consumers != 0:
        return None
    expires = queue.setting("expires")
    if not isinstance(expires, int):
        return None
    unused = stretch(deletion.readings, without_consumers)
    begins = unused[0].at if len(unused) < len(deletion.readings) else deletion.born
    if begins is not None and deletion.after.since(begins) + view.thresholds.interval < expires / 1000:
        return None
    return unused


def deletions_of(presence: list[tuple[Instant, Queue | None]], absences: int = 2) -> Iterator[Deletion]:
    """Yield the deletions that the readings of one queue show, oldest first.

    Args:
        presence: the queue at each reading; None for readings without it.
        absences: readings in a row without the queue at the end that prove a deletion.
    """
    history: list[Timestamped[Queue]] = []
    absent: list[Instant] = []
    born: Instant | None = None
    for at, queue in presence:
        if queue is None:
            absent.append(at)
        elif queue.messages is not None:
            # Without a length, the queue is new, or its node does not answer.
            if history and _is_another(history[-1].value, queue, missed=bool(absent)):
                yield _deletion(history, absent[0] if absent else at, _recovered(queue), born)
                history = []
            if not history:
                born = absent[-1] if absent else None
            history.append(Timestamped(at, queue))
            absent = []
    if history and len(absent) >= absences:
        yield _deletion(history, absent[0], 0, born)


def _is_another(before: Queue, queue: Queue, *, missed: bool) -> bool:
    """Return whether a queue was deleted and declared again between two readings.

    Counters that begin again show it. Those of the Prometheus endpoint belong to the name of a queue and go on. There,
    nothing of what the queue held is left, and it was not listed in between, or lost its unacknowledged messages with
    its consumers. A purge leaves those.

    Args:
        before: the earlier reading.
        queue: the later one.
        missed: whether a reading between them was without the queue.
    """
    if restarted(before.stats, queue.stats):
        return True
    old, new = levels(before), levels(queue)
    if old is None or new is None or not before.messages:
        return False
    left = new.ready + new.unacked + (new.acked - old.acked) + (new.auto - old.auto)
    unsettled = before.auto_delete and 0 < old.unacked <= new.discarded - old.discarded
    return left <= new.arrived - old.arrived and (missed or bool(unsettled))


def _recovered(queue: Queue) -> int:
    """Return how many messages a queue has that were not published since its counters began.

    They are those of the queue before, so only the counters began again: a leader moved, or statistics were reset.
    """
    return max(0, (queue.messages or 0) - count(queue.stats, "publish"))


def _deletion(history: list[Timestamped[Queue]], after: Instant, recovered: int, born: Instant | None) -> Deletion:
    """Return the deletion after some readings of a queue; `born` is the last reading before them, without the queue."""
    before = history[-1]
    known = stretch(tuple(history), lambda _, newer: levels(newer.value) is not None)
    away = after.since(before.at)
    settled = 0 if _unread(known, away) else settled_after(known, away)
    # Older readings are further apart: the one left of a short life tells no pace, or the last one is too old.
    brief = born is not None and len(known) == 1 and count(before.value.stats, *CONSUMED) > 0
    if brief or (settled and away > _PACE_KNOWN):
        settled = before.value.messages or 0
    return Deletion(tuple(history), born, after, max(0, (before.value.messages or 0) - settled - recovered))


def _unread(history: Series[Queue], seconds: float) -> bool:
    """Return whether nobody took messages in the last readings of a queue, so that nobody settled any after them.

    A consumer that came within the seconds after them is not listed. It was none if there was no time for it.
    """
    if len(history) < 2 or seconds > _PACE_KNOWN:
        return False
    older, newer = history[-2:]
    return without_consumers(older, newer) and not delta((older, newer), *CONSUMED, *POLLED)


def node_started(view: View, deletion: Deletion) -> bool:
    """Return whether a node started around a deletion, or its own is down: then queues and counters are not listed."""
    queue = deletion.before.value
    own = view.node(queue.leader or queue.node)
    if own is not None and not own.running:
        return True
    return any(
        node.running
        and (node.uptime_seconds is None or view.now.mono - node.uptime_seconds > deletion.before.at.mono - _STARTING)
        for node in view.nodes
    )

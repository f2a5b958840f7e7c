"""What consumers rejected since their channels were opened: a loss that may be too slow for a short observation.

The law: a channel was sent more than it acknowledged and holds. The rest it rejected, or returned to the queue. What is
returned is ready again, or is redelivered and counted as such, by whatever channel. So

    lost >= delivered - redelivered - acknowledged - unacknowledged - returned     by the counters of the queue
    lost <= sent - acknowledged - unacknowledged, of the channels that are open

Both must show it. The counters of a queue alone do not prove it: channels that ended may have taken acknowledgements
with them that were never counted (`diagnosis.ledger`), and over months these add up. The counters of an open channel
are whole. If the broker forgets its statistics, it counts open channels again from their own beginning, so their
deliveries and acknowledgements still belong together. Only redeliveries by channels that ended are then missing, so a
queue with as many redeliveries as losses is not judged. A channel may have rejected messages of another queue before;
the counters of this one exclude them. Of the ready messages, only the latest may have been returned (`returned`).

Not judged is what looks the same: a TTL or a length limit deletes messages as they return. So does an expiration of
each message, which is in no list; where messages return, it is named beside the rejects. A dead-letter exchange that
was removed before the first reading kept what was rejected until then. Nobody knows, so the finding is never certain.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.hold_time import may_hold
from diagnosis.ledger import SKEW_SECONDS, Levels, levels, may_have_lost, may_settle_unseen
from diagnosis.rules.clients._shared.connections import age_seconds
from diagnosis.rules.consumers._shared.returned import returned
from diagnosis.rules.consumers._shared.standstill import held
from diagnosis.rules.consumers.poison_drop import at_limit, delivery_limit
from diagnosis.rules.publishers._shared.overflow import has_length_limit
from diagnosis.series import count, delta, last, span
from diagnosis.window import Series

_LONGEST_WATCH = 600.0
"""Seconds within which an exporter would find the loss at its mean rate; a slower one is information."""
_RETURNS = 0.1
"""Redeliveries, as a share of the losses, from which on messages may also have expired as they returned."""
_DUE = 2.0
"""Times as many messages as prove a loss that must have been due to be lost while watched, to judge if it has ended."""


@dataclass(frozen=True, slots=True)
class RejectingConsumer:
    """A consumer, and how many messages its channel settled without an acknowledgement."""

    link: ConsumerPath
    rejected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedSinceOpened:
    """What consumers of one queue rejected since their channels were opened, and nothing kept.

    Attributes:
        rejecters: the consumers, most rejected messages first.
        lost: minimum of lost messages; `error` of them may be due to the delay between counters.
        delivered, acked: messages that these consumers were sent for the first time, and acknowledged.
        redelivered: messages of the queue that were delivered again.
        seconds: time since the oldest of their connections was opened.
        lasts: whether it goes on as far as known: more were lost within the readings, or the mean rate is not slow.
    """

    queue: Queue
    rejecters: tuple[RejectingConsumer, ...]
    lost: int
    error: int
    delivered: int
    acked: int
    redelivered: int
    seconds: float
    lasts: bool

    @property
    def perhaps_expired(self) -> bool:
        """Whether clients return messages, so that some may have an expiration of their own that was over by then."""
        return self.redelivered >= _RETURNS * self.lost

    @property
    def share(self) -> float:
        """Share of the deliveries to these consumers that was lost."""
        return min(1.0, self.lost / max(self.delivered, 1))


def rejected_since_opened(view: View) -> Iterator[RejectedSinceOpened]:
    """Yield the queues whose consumers rejected messages since their channels were opened."""
    for queue in view.queues:
        now = levels(queue) if may_have_lost(view, queue) else None
        if now is None:
            continue
        missing = _missing(view, queue, now)
        if missing > 0 and _only_rejects_delete(view, queue):
            found = _of(view, queue, now, missing)
            if found is not None:
                yield found


def _missing(view: View, queue: Queue, now: Levels) -> int:
    """Return how many messages were delivered and are nowhere any more, if what was returned is ready again."""
    gone = now.discarded - now.held
    if gone <= 0 or not now.ready:
        return gone
    back = returned(view, queue, view.history(queue))
    return gone - (now.ready if back is None else min(now.ready, back))


def _only_rejects_delete(view: View, queue: Queue) -> bool:
    """Return whether only rejects delete messages of a queue after a delivery."""
    if not queue.settings_known or may_settle_unseen(view, queue):
        return False
    if queue.setting("message-ttl") is not None or has_length_limit(queue):
        return False
    return all(seen.value.setting("dead-letter-exchange") is None for seen in view.history(queue))


def _of(view: View, queue: Queue, now: Levels, missing: int) -> RejectedSinceOpened | None:
    rejecters = _rejecters(view, queue)
    connections = [each.link.connection for each in rejecters]
    ages = [age_seconds(view, each) for each in connections if each is not None and each.connected_at is not None]
    limits, history = view.limits(queue), view.history(queue)
    if len(history) < 2 or not ages or len(ages) < len(rejecters):
        return None
    redelivered, limit = count(queue.stats, "redeliver"), delivery_limit(queue, view.version)
    if limit is not None:
        missing -= at_limit(missing, redelivered, limit)
    lost = min(missing, sum(each.rejected for each in rejecters))
    least, error, seconds = limits.queues.loss_least, _error(view, queue, history), max(ages)
    if lost - error < least or redelivered >= lost:
        return None
    before = levels(history[0].value)
    grown, due = 0 if before is None else now.discarded - before.discarded, lost * span(history) / seconds
    if due >= _DUE * least and 2 * grown < due:
        return None
    own = [each.link.channel.stats for each in rejecters if each.link.channel is not None]
    found = RejectedSinceOpened(
        queue=queue,
        rejecters=rejecters,
        lost=lost,
        error=error,
        delivered=sum(count(each, "deliver") - count(each, "redeliver") for each in own),
        acked=sum(count(each, "ack") for each in own),
        redelivered=redelivered,
        seconds=seconds,
        lasts=grown > 0 or lost * _LONGEST_WATCH >= least * seconds,
    )
    return found if found.share >= limits.consumers.reject_share / 10 else None


def _rejecters(view: View, queue: Queue) -> tuple[RejectingConsumer, ...]:
    found: dict[str, RejectingConsumer] = {}
    for link in view.links(queue):
        if link.channel is None or view.queues_served(link.channel.name) != 1:
            continue
        stats, held_back = link.channel.stats, held(link.channel) + (link.channel.acks_uncommitted or 0)
        rejected = count(stats, "deliver") - count(stats, "ack") - held_back
        if rejected > 0:
            found[link.channel.name] = RejectingConsumer(link, rejected)
    return tuple(sorted(found.values(), key=lambda each: -each.rejected))


def _error(view: View, queue: Queue, history: Series[Queue]) -> int:
    """Return how many messages may be counted as delivered and not yet as unacknowledged or acknowledged."""
    recent = last(history, 2 * SKEW_SECONDS)
    moved = math.ceil(max(1.0, 2 * SKEW_SECONDS / span(recent)) * delta(recent, "deliver", "get"))
    most = may_hold(view, queue)
    return moved if most is None else min(moved, most)

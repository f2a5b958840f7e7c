"""Ledger of a queue: messages that came in against messages that left or are stored. What does not balance is lost.

All terms are counters and lengths of `/api/queues`:

    arrived   = publish
    delivered = deliver + get - redeliver           first deliveries that a client must settle
    auto      = deliver_no_ack + get_no_ack         settled by the broker on delivery
    discarded = delivered - ack - unacked           settled without an ack: rejected, or requeued and ready again
    vanished  = arrived - delivered - auto - ready  gone before any delivery: expired, dropped, refused, purged
    missing   = discarded + vanished                a requeued message adds to one what it takes from the other

Messages that arrive without a publish (dead letters) lower `vanished` and `missing`, so all three are lower bounds.
The counters come from channels and the lengths from the queue; each is refreshed every 5 s at its own time. `error`
bounds what that delay can explain. When a queue is quiet it is 0, and the count is exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from ackscope.counters import MessageStats
from ackscope.snapshot import Queue
from diagnosis.series import count, delta, span, stretch
from diagnosis.view import View
from diagnosis.window import Series

SKEW_SECONDS = 6.0
"""Maximum difference in age between two statistics of one answer: the interval of 5 s, and some delay."""


_NO_COUNTERS = MessageStats()


@dataclass(frozen=True, slots=True)
class Levels:
    """The cumulative terms of one reading, as the module describes them."""

    arrived: int
    delivered: int
    auto: int
    acked: int
    ready: int
    unacked: int
    held: int

    @property
    def discarded(self) -> int:
        """Messages that were delivered, and are neither acknowledged nor unacknowledged."""
        return self.delivered - self.acked - self.unacked

    @property
    def vanished(self) -> int:
        """Messages that were never delivered and are not ready."""
        return self.arrived - self.delivered - self.auto - self.ready

    @property
    def missing(self) -> int:
        """Messages that came in and are neither settled nor stored; dead letters that are held count as stored."""
        return self.discarded + self.vanished - self.held


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The balance of one queue over a period.

    Attributes:
        arrived, acked, auto: messages published, acknowledged, and delivered with automatic acknowledgement.
        delivered: first deliveries that a client must settle.
        redelivered: deliveries of messages that had been delivered before.
        discarded: minimum of messages that consumers settled without an ack and that are not in the queue any more.
        vanished: minimum of messages that left the queue before any delivery.
        discarded_error, vanished_error: what the delay between counters can explain; in both directions.
        stored: increase of ready, unacknowledged and held messages.
        seconds: length of the period.
    """

    arrived: int
    delivered: int
    acked: int
    auto: int
    redelivered: int
    discarded: int
    vanished: int
    discarded_error: int
    vanished_error: int
    stored: int
    seconds: float

    @property
    def proven_discarded(self) -> int:
        """Messages discarded after delivery, without those that the delay between counters can explain."""
        return max(0, self.discarded - self.discarded_error)

    @property
    def proven_vanished(self) -> int:
        """Messages gone before delivery, without those that the delay between counters can explain."""
        return max(0, self.vanished - self.vanished_error)


def levels(queue: Queue) -> Levels | None:
    """Return the terms of a queue at one reading; None if a length is unknown or the queue is a stream.

    Without any length and counter a queue is new and counts as empty: the broker reports both some seconds late. If it
    was recovered after a restart, what it holds arrives without a publish and only lowers what is missing.
    """
    stats = queue.stats
    if queue.messages_ready is None and queue.messages_unacked is None and stats == _NO_COUNTERS:
        return Levels(arrived=0, delivered=0, auto=0, acked=0, ready=0, unacked=0, held=0)
    if queue.messages_ready is None or queue.messages_unacked is None or queue.type == "stream":
        return None
    return Levels(
        arrived=count(stats, "publish"),
        delivered=count(stats, "deliver", "get") - count(stats, "redeliver"),
        auto=count(stats, "deliver_no_ack", "get_no_ack"),
        acked=count(stats, "ack"),
        ready=queue.messages_ready,
        unacked=queue.messages_unacked,
        held=queue.messages_dlx or 0,
    )


def may_have_lost(queue: Queue) -> bool:
    """Return whether messages are missing since the counters of a queue began; cheap, for brokers with many queues."""
    now = levels(queue)
    return now is not None and (now.discarded > 0 or now.vanished > 0)


def ledger(history: Series[Queue], in_flight: int | None = None) -> Ledger | None:
    """Return the balance of a queue over readings without a restart of its counters.

    Args:
        history: readings, oldest first.
        in_flight: maximum number of messages that its consumers may hold; None if there is no limit.

    Returns:
        The balance since the first reading from which on all lengths are known; None with fewer than two such readings.
    """
    history = stretch(history, lambda older, newer: levels(older.value) is not None and levels(newer.value) is not None)
    known = [each for seen in history if (each := levels(seen.value)) is not None]
    if len(known) < 2:
        return None
    first, last = known[0], known[-1]
    discarded, vanished = last.discarded - first.discarded, last.vanished - first.vanished
    # Older readings are further apart, so a burst beside the first one cannot be seen. Then the second one counts.
    apart = history[1].at.since(history[0].at) > 2 * SKEW_SECONDS
    early_discarded = max(0, known[1].discarded - first.discarded) if apart else 0
    early_vanished = max(0, known[1].vanished - first.vanished) if apart else 0
    held = max(0, last.held - first.held)
    missing = discarded + vanished - held
    # Deliveries and acks are of one channel, so only messages in flight can be counted at one time and not the other.
    most = None if in_flight is None else max(in_flight, *(each.unacked for each in known))
    delay = _moved_within_skew(history, "deliver", "get")
    flow = _moved_within_skew(history, "publish", "deliver", "get", "deliver_no_ack", "get_no_ack")
    return Ledger(
        arrived=last.arrived - first.arrived,
        delivered=last.delivered - first.delivered,
        acked=last.acked - first.acked,
        auto=last.auto - first.auto,
        redelivered=count(history[-1].value.stats, "redeliver") - count(history[0].value.stats, "redeliver"),
        # A requeued message is ready again: it is missing in neither way. Without ready messages there is none.
        discarded=max(0, min(discarded, missing), discarded - last.ready - held),
        vanished=max(0, min(vanished - held, missing)),
        discarded_error=early_discarded + sum(moved if most is None else min(moved, most) for moved in delay),
        vanished_error=early_vanished + sum(flow),
        stored=(last.ready + last.unacked + last.held) - (first.ready + first.unacked + first.held),
        seconds=span(history),
    )


def _moved_within_skew(history: Series[Queue], *counters: str) -> tuple[int, int]:
    """Return how many messages moved within the delay between counters, at the start and at the end.

    Of several counters, those that rise fastest bound the difference: all count the same messages.
    """

    def moved(pair: Series[Queue]) -> int:
        # Within a short interval all of it may be one refresh of the counters.
        share = SKEW_SECONDS / max(span(pair), SKEW_SECONDS)
        return math.ceil(share * max(delta(pair, counter) for counter in counters))

    pairs = list(pairwise(history))
    return (max(map(moved, pairs[:2])), max(map(moved, pairs[-2:])))


def growing_since(history: Series[Queue], term: Callable[[Levels], int]) -> Series[Queue]:
    """Return the readings from the one before a term of the ledger first grew; all of them if it never did."""
    for place, (older, newer) in enumerate(pairwise(history)):
        before, after = levels(older.value), levels(newer.value)
        if before is not None and after is not None and term(after) > term(before):
            return history[place:]
    return history


def settles_unseen(view: View, queue: Queue) -> bool:
    """Return whether a consumer of a queue leaves no counters: it uses another protocol than AMQP 0-9-1.

    Its messages would look lost. The management API shows such a consumer without a channel.
    """
    return any(not link.consumer.channel_name for link in view.links(queue))

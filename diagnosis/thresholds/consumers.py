"""Numbers that the rules about consumers judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ConsumerThresholds(Settings):
    """Of the rules about consumers.

    Attributes:
        no_consumer_growing: how long a queue without consumers must have been growing (catalogue: 3 min,
            longer than a rolling deployment of a consumer takes).
        no_consumer_quiet: how long one that does not grow must have been left alone (catalogue: 10 min).
        stuck_seen: how long we must have seen nothing acknowledged ourselves; one refresh of the broker.
        stuck_for: how long consumers must have held their full prefetch. Twice that would still beat every
            rule on totals; half would report handlers that work in batches of ten seconds.
        stuck_long: the same where the evidence is weaker: prefetch 1 (a long job looks like this), no prefetch
            limit (a client that collects batches looks like this), or no message waiting.
        stuck_long_job: prefetch 1 and nobody waiting, or one such consumer among working ones; a quarter of
            RabbitMQ's default acknowledgement timeout of 30 min.
            Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
        stuck_patience: a queue whose consumers acknowledged once in S seconds until now is given this times S.
        requeue_for: how long messages must have gone round.
        requeue_intervals: in how many intervals in a row; a burst after a consumer's restart fills one.
        requeue_share: redelivered, of all delivered, more than this (catalogue: 0.5).
        requeue_rate: redelivered a second, more than this (catalogue: 1).
        requeue_acked: acknowledged, of all delivered, less than this (catalogue: 0.1).
        slow_for: how long a backlog must have grown behind full consumers before it is a warning (catalogue: four
            polls of 30 s in a row).
        slow_wait: a backlog that these consumers work off sooner than this is information only.
        slow_full: consumers are full when they hold at least this share of what they may hold; below it they wait
            for the broker.
        prefetch_small: a prefetch up to this may be too small (catalogue: 10).
        prefetch_round_trips: ... where messages are held for no more than so many round trips (catalogue: 5).
        prefetch_quick: ... or for less than this, whatever the round trip is: a client needs time of its own between
            two messages (measured: a client library on the broker's own machine takes 1 to 3 ms).
        prefetch_unknown: without a measured round trip, a hold time above this is the handler's.
        hoard_messages: one channel that holds more than this has too much (catalogue: 1000).
        hoard_share: ... of at least this share of what the queue's consumers hold together (catalogue: 0.8).
        hoard_work: ... and more than this of work at the pace of its acknowledgements (catalogue: 60 s).
        hoard_for: how long it must have held them before it is a warning.
        unread_for: how long a client must not have read its socket before it is a warning (catalogue: 3 polls). The
            broker closes such a connection after its send timeout, 15 s by default.
        zombie_for: how long a connection must have been without a channel, since its consumer ended, before it is a
            warning (catalogue: 2 min).
        polling_rate: polls a second that find an empty queue, more than this (catalogue: 10).
        ack_timeout_near: share of the acknowledgement timeout that a delivery may be held before it is told.
        ack_timeout_default: the timeout where the broker does not tell it; RabbitMQ's default, 30 min.
        flapping_changes: in how many of the latest readings of consumers, each compared with the one before, those of a
            queue must have changed (catalogue: more than half of all polls).
        flapping_for: how long a queue's consumers must have come and gone before it is a warning.
        loop_for: how long a client must have been refused, or its channels closed, again and again before it is a
            warning; an application that starts badly once is over by then.
        orphaned_for: how long a queue must have counted messages as held that no channel holds (catalogue: 5 min).
        poison_seen: how long a loss must be looked at: the broker's counters are refreshed at different moments.
    """

    no_consumer_growing: Seconds = 180.0
    no_consumer_quiet: Seconds = 600.0
    stuck_seen: Seconds = 4.0
    stuck_for: Seconds = 20.0
    stuck_long: Seconds = 60.0
    stuck_long_job: Seconds = 450.0
    stuck_patience: float = Field(default=3.0, ge=1.0)
    requeue_for: Seconds = 20.0
    requeue_intervals: int = Field(default=2, ge=1)
    requeue_share: float = Field(default=0.5, gt=0.0, lt=1.0)
    requeue_rate: float = Field(default=1.0, gt=0.0)
    requeue_acked: float = Field(default=0.1, gt=0.0, lt=1.0)
    slow_for: Seconds = 120.0
    slow_wait: Seconds = 30.0
    slow_full: float = Field(default=0.7, gt=0.0, le=1.0)
    prefetch_small: int = Field(default=10, ge=1)
    prefetch_round_trips: float = Field(default=5.0, ge=1.0)
    prefetch_quick: Seconds = 0.005
    prefetch_unknown: Seconds = 0.25
    hoard_messages: int = Field(default=1000, ge=1)
    hoard_share: float = Field(default=0.8, gt=0.0, le=1.0)
    hoard_work: Seconds = 60.0
    hoard_for: Seconds = 60.0
    unread_for: Seconds = 10.0
    zombie_for: Seconds = 120.0
    polling_rate: float = Field(default=10.0, gt=0.0)
    ack_timeout_near: float = Field(default=0.5, gt=0.0, lt=1.0)
    ack_timeout_default: Seconds = 1800.0
    flapping_changes: int = Field(default=3, ge=1)
    flapping_for: Seconds = 60.0
    loop_for: Seconds = 60.0
    orphaned_for: Seconds = 300.0
    poison_seen: Seconds = 12.0

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart."""
        return cls(
            no_consumer_growing=4.0,
            no_consumer_quiet=4.0,
            stuck_seen=4.0,
            stuck_for=4.0,
            requeue_for=4.0,
            requeue_intervals=1,
            slow_for=4.0,
            hoard_for=4.0,
            unread_for=4.0,
            flapping_changes=1,
            flapping_for=4.0,
            loop_for=4.0,
            poison_seen=4.0,
        )

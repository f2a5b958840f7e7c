"""Thresholds of the rules about consumers."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ConsumerThresholds(Settings):
    """Thresholds of the rules about consumers.

    Attributes:
        no_consumer_growing: A queue that grows without a consumer for this long is a warning; longer than a rolling
            deployment of a consumer takes.
        no_consumer_quiet: A queue with messages but no consumer that does not grow is reported after this time.
        stuck_seen: ackscope itself must have seen no acknowledgement for this long; one refresh of the broker's
            statistics.
        stuck_for: Consumers that hold their full prefetch and acknowledge nothing for this long are stuck. Half of it
            would report handlers that work in batches of 10 s; twice of it would still be faster than rules about
            totals.
        stuck_long: The limit for stuck consumers where the evidence is weaker, with prefetch 1 (a long job looks the
            same), no prefetch limit (a client that collects batches looks the same) or no message ready.
        stuck_long_job: The limit for stuck consumers with prefetch 1 and no message ready, and for one such consumer
            among working ones; a quarter of RabbitMQ's default acknowledgement timeout of 30 min.
            Source: https://www.rabbitmq.com/docs/consumers#acknowledgement-timeout
        stuck_patience: A queue whose consumers used to acknowledge once in S seconds is stuck after this many times S
            at the earliest.
        requeue_for: Messages that circulate between queue and consumer for this long are a requeue loop.
        requeue_intervals: Messages must circulate in this many intervals in a row; a burst after a restart of a
            consumer fills one.
        requeue_share: Messages circulate where redeliveries are more than this share of all deliveries.
        requeue_rate: Messages circulate where more than this many are redelivered a second.
        requeue_acked: Messages circulate where acknowledgements are less than this share of all deliveries.
        slow_for: A queue that grows for this long while its consumers work at capacity is a warning.
        slow_wait: A backlog that these consumers can process within this time is information only.
        slow_full: Consumers work at capacity when they hold at least this share of the messages that they may hold;
            below it they wait for the broker.
        prefetch_small: A prefetch up to this may be too small.
        prefetch_round_trips: A small prefetch is too small where messages are held for at most this many round trips.
        prefetch_quick: A small prefetch is too small where messages are held for less than this, whatever the round
            trip is; a client library on the broker's own host takes 1 to 3 ms (measured).
        prefetch_unknown: Where no round trip is measured, the handler takes the time if messages are held for longer
            than this.
        hoard_messages: A channel that holds more than this many messages holds too many.
        hoard_share: A hoarding channel holds at least this share of the unacknowledged messages of the queue.
        hoard_work: A hoarding channel holds more than it can acknowledge in this time at its own pace.
        hoard_for: A consumer that holds too many messages for this long is a warning.
        unread_for: A client that has not read its socket for this long is a warning. The broker closes such a
            connection after its send timeout, 15 s by default.
        zombie_for: A connection without a channel for this long since its consumer ended is a warning.
        polling_rate: A client polls in a loop where more than this many polls a second find the queue empty.
        ack_timeout_near: A delivery that is held for this share of the acknowledgement timeout is a warning.
        ack_timeout_default: The acknowledgement timeout where the broker does not report it; RabbitMQ's default of 30
            min.
        flapping_changes: The consumers of a queue must differ from those of the reading before in at least this many of
            the latest readings, and in more than half of them.
        flapping_for: Consumers that connect and disconnect for this long are a warning.
        loop_for: A client whose channels are closed, or that is refused, again and again for this long is a warning; a
            failed start of an application is over by then.
        orphaned_for: A queue that counts messages as unacknowledged for this long, while no channel holds them, is a
            warning.
        poison_seen: A loss at the delivery limit must be seen over this time, because the broker refreshes its counters
            at different moments.
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
        """For two readings 6 to 10 s apart."""
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

"""Thresholds of the rules about consumers."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ConsumerThresholds(Settings):
    """Thresholds of the rules about consumers."""

    no_consumer_growing: Seconds = 180.0
    no_consumer_quiet: Seconds = 480.0
    stuck_seen: Seconds = 4.0
    stuck_for: Seconds = 20.0
    stuck_unknown: Seconds = 40.0
    stuck_never_acked: Seconds = 40.0
    stuck_long: Seconds = 60.0
    stuck_long_job: Seconds = 450.0
    stuck_patience: float = Field(default=3.0, ge=1.0)
    requeue_for: Seconds = 20.0
    requeue_intervals: int = Field(default=2, ge=1)
    requeue_share: float = Field(default=0.5, gt=0.0, lt=1.0)
    requeue_rate: float = Field(default=1.0, gt=0.0)
    requeue_acked: float = Field(default=0.1, gt=0.0, lt=1.0)
    requeue_mean: float = Field(default=2.0, gt=0.0)
    requeue_mixed_for: Seconds = 45.0
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
    reject_share: float = Field(default=0.1, gt=0.0, le=1.0)
    none_active_for: Seconds = 4.0
    no_credit_for: Seconds = 60.0
    cancelled_for: Seconds = 45.0
    restarted_for: Seconds = 30.0
    prefetch_grows_for: Seconds = 30.0
    grows_seen: Seconds = 24.0
    grows_for: Seconds = 45.0
    grows_new_for: Seconds = 240.0
    grows_least: int = Field(default=10, ge=1)
    leak_for: Seconds = 20.0
    republish_for: Seconds = 45.0
    republish_rate: float = Field(default=2.0, gt=0.0)
    republish_rounds: float = Field(default=5.0, ge=1.0)
    leak_least: int = Field(default=5, ge=1)
    leak_many: int = Field(default=10, ge=2)
    leak_very_many: int = Field(default=30, ge=2)
    pause_times: int = Field(default=2, ge=2)
    pause_often: int = Field(default=3, ge=2)
    pause_share: float = Field(default=0.25, gt=0.0, le=1.0)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two readings 6 to 10 s apart."""
        return cls(
            no_consumer_growing=4.0,
            no_consumer_quiet=4.0,
            stuck_seen=4.0,
            stuck_for=4.0,
            stuck_unknown=4.0,
            stuck_never_acked=4.0,
            requeue_for=4.0,
            requeue_intervals=1,
            requeue_mixed_for=4.0,
            slow_for=4.0,
            hoard_for=4.0,
            unread_for=4.0,
            no_credit_for=4.0,
            flapping_changes=1,
            flapping_for=4.0,
            loop_for=4.0,
            poison_seen=4.0,
            prefetch_grows_for=4.0,
            grows_seen=4.0,
            leak_for=4.0,
            republish_for=4.0,
        )

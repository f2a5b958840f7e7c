"""Thresholds of the rules about queues (C)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class QueueThresholds(Settings):
    """Thresholds of the rules about queues (C)."""

    overload_for: Seconds = 180.0
    overload_surge: float = Field(default=1.5, gt=1.0)
    overload_share: float = Field(default=0.1, gt=0.0, lt=1.0)
    stale_after: Seconds = 300.0
    stale_early: Seconds = 30.0
    stale_burst: Seconds = 60.0
    stale_overtaken: float = Field(default=2.0, ge=1.0)
    loss_skew: Seconds = 6.0
    loss_least: int = Field(default=5, ge=1)
    loss_share: float = Field(default=0.01, gt=0.0, lt=1.0)
    full_share: float = Field(default=0.9, gt=0.0, le=1.0)
    maxlen_for: Seconds = 60.0
    expiry_for: Seconds = 300.0
    expiry_much_for: Seconds = 60.0
    expiry_much_share: float = Field(default=0.1, gt=0.0, le=1.0)
    delay_blocked_for: Seconds = 20.0
    delay_blocked_unseen_for: Seconds = 4.0
    delay_blocked_factor: float = Field(default=1.5, gt=1.0)
    dead_letters_for: Seconds = 300.0
    dead_letters_least: int = Field(default=10, ge=1)
    dead_letters_retention: Seconds = 3600.0
    dlx_for: Seconds = 60.0
    dlx_waiting_for: Seconds = 120.0
    cycle_for: Seconds = 60.0
    cycle_rate: float = Field(default=0.2, gt=0.0)
    cycle_acked: float = Field(default=0.1, gt=0.0, lt=1.0)
    cycle_rounds: int = Field(default=20, ge=2)
    hot_share: float = Field(default=0.6, gt=0.0, lt=1.0)
    hot_rate: float = Field(default=1000.0, gt=0.0)
    hot_for: Seconds = 180.0
    leak_rate: float = Field(default=0.5, gt=0.0)
    leak_least: int = Field(default=20, ge=1)
    leak_seen: Seconds = 20.0
    leak_quick_for: Seconds = 180.0
    leak_slow: float = Field(default=1.0, gt=0.0)
    leak_for: Seconds = 1800.0
    leak_many: int = Field(default=10_000, ge=1)
    reply_least: int = Field(default=20, ge=2)
    reply_gained: int = Field(default=5, ge=1)
    reply_for: Seconds = 60.0
    stream_rate: float = Field(default=1.0, gt=0.0)
    stream_for: Seconds = 180.0
    orphan_for: Seconds = 180.0
    orphan_alone: Seconds = 590.0
    crashed_for: Seconds = 12.0
    node_down_for: Seconds = 120.0
    large_bytes: float = Field(default=1_048_576.0, gt=0.0)
    large_least: int = Field(default=5, ge=1)
    large_held: float = Field(default=0.25, gt=0.0, le=1.0)
    segment_pinned: float = Field(default=268_435_456.0, gt=0.0)
    segment_much: float = Field(default=2_147_483_648.0, gt=0.0)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two polls 6 to 10 s apart."""
        return cls(
            loss_skew=3.0,
            overload_for=4.0,
            maxlen_for=4.0,
            expiry_for=4.0,
            expiry_much_for=4.0,
            dead_letters_for=4.0,
            dlx_for=4.0,
            dlx_waiting_for=4.0,
            cycle_for=4.0,
            leak_seen=4.0,
            leak_least=10,
            reply_gained=2,
            reply_for=4.0,
            stream_for=4.0,
            node_down_for=4.0,
        )

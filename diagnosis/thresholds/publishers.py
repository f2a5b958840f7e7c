"""Thresholds of the rules about publishers."""

from typing import Self

from pydantic import Field, field_validator

from ackscope.settings import Seconds, Settings, pattern_problem


class PublisherThresholds(Settings):
    """Thresholds of the rules about publishers."""

    overflow_relief: float = Field(default=0.8, gt=0.0, le=1.0)
    overflow_share: float = Field(default=0.1, gt=0.0, le=1.0)
    unroutable_steps: int = Field(default=2, ge=1)
    unroutable_after: Seconds = 60.0
    unroutable_long: Seconds = 300.0
    unroutable_rate: float = Field(default=0.1, ge=0.0)
    unroutable_share: float = Field(default=0.05, gt=0.0, le=1.0)
    unroutable_patience: Seconds = 20.0
    unroutable_by_design: tuple[str, ...] = ()
    no_confirms_least: int = Field(default=100, ge=1)
    stall_for: Seconds = 20.0
    flow_share: float = Field(default=0.8, gt=0.0, le=1.0)
    flow_for: Seconds = 20.0
    flow_confirm: Seconds = 0.25
    transaction_open: Seconds = 60.0
    sync_latency: Seconds = 0.05
    sync_share: float = Field(default=0.5, gt=0.0, le=1.0)
    transient_share: float = Field(default=0.1, gt=0.0, le=1.0)
    transient_least: int = Field(default=10, ge=1)
    closing_after: Seconds = 60.0
    closing_bytes: int = Field(default=1 << 20, ge=1)
    silent_queues: tuple[str, ...] = ()
    silent_for: Seconds = 300.0
    pause_messages: int = Field(default=20, ge=1)
    pause_publishers: int = Field(default=2, ge=1)

    @field_validator("unroutable_by_design", "silent_queues")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            problem = pattern_problem(pattern)
            if problem is not None:
                raise ValueError(f"{pattern[:80]!r} is not a regular expression ({problem}); correct it")
        return patterns

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two snapshots 6 to 10 s apart."""
        return cls(
            unroutable_steps=1,
            unroutable_after=4.0,
            unroutable_long=4.0,
            unroutable_patience=0.0,
            stall_for=4.0,
            flow_for=4.0,
            closing_after=4.0,
            silent_for=4.0,
        )

"""Thresholds of the rules about nodes and what they run on (D)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings

_LOOK_AFTER_START = 120.0
"""Seconds after its start in which the clients of a node may not be back."""


class NodeThresholds(Settings):
    """Thresholds of the rules about nodes and what they run on (D)."""

    memory_near: float = Field(default=0.8, gt=0.0, lt=1.0)
    memory_near_for: Seconds = 300.0
    memory_eta: Seconds = 1800.0
    memory_unused: float = Field(default=0.4, gt=0.0, lt=1.0)
    memory_unused_least: int = Field(default=256 * 2**20, ge=0)
    disk_eta: Seconds = 86_400.0
    disk_eta_soon: Seconds = 3600.0
    disk_watched: Seconds = 1800.0
    disk_watched_soon: Seconds = 300.0
    disk_look: Seconds = 20.0
    disk_unsafe_limit: int = Field(default=50_000_000, ge=0)
    fd_near: float = Field(default=0.7, gt=0.0, lt=1.0)
    fd_critical: float = Field(default=0.85, gt=0.0, lt=1.0)
    sockets_critical: float = Field(default=0.95, gt=0.0, le=1.0)
    processes_near: float = Field(default=0.7, gt=0.0, lt=1.0)
    processes_critical: float = Field(default=0.9, gt=0.0, lt=1.0)
    cpu_queue: float = Field(default=3.0, gt=0.0)
    cpu_for: Seconds = 120.0
    slow_confirm: Seconds = 0.1
    slow_times: float = Field(default=5.0, ge=1.0)
    restart_told: Seconds = 900.0
    restart_loop: int = Field(default=3, ge=2)
    restart_recent: float = Field(default=0.0, ge=0.0)
    overload_seconds: Seconds = 5.0
    overload_readings: int = Field(default=3, ge=1)
    certificate_days: float = Field(default=30.0, ge=0.0)
    vhost_down_for: Seconds = 8.0
    hung_for: Seconds = 8.0
    silent_for: Seconds = 60.0
    listener_for: Seconds = 8.0
    broker_down_for: Seconds = 60.0
    starts_for: Seconds = 60.0
    clock_skew: Seconds = 5.0
    clock_skew_large: Seconds = 300.0

    @classmethod
    def brief(cls) -> Self:
        """For one look: the start of a node is not seen."""
        return cls(restart_recent=_LOOK_AFTER_START)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two readings 6 to 10 s apart."""
        return cls(
            restart_recent=_LOOK_AFTER_START,
            memory_near_for=4.0,
            overload_readings=1,
            vhost_down_for=4.0,
            hung_for=4.0,
            silent_for=4.0,
            listener_for=4.0,
            broker_down_for=4.0,
        )

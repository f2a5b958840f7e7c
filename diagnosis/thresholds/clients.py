"""Thresholds of the rules about connections and channels (X)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClientThresholds(Settings):
    """Thresholds of the rules about connections and channels (X)."""

    channel_churn_slow: float = Field(default=1.0, gt=0.0)
    channel_churn_fast: float = Field(default=10.0, gt=0.0)
    channel_churn_for: Seconds = 300.0
    refused_for: Seconds = 180.0
    connection_churn_slow: float = Field(default=0.1, gt=0.0)
    connection_churn_fast: float = Field(default=1.0, gt=0.0)
    connection_churn_share: float = Field(default=0.1, gt=0.0)
    connection_churn_for: Seconds = 300.0
    channels_many: int = Field(default=100, ge=1)
    channels_share: float = Field(default=0.5, gt=0.0, le=1.0)
    channels_growth: int = Field(default=15, ge=1)
    connections_growth: int = Field(default=15, ge=1)
    connections_many: int = Field(default=200, ge=1)
    limit_share: float = Field(default=0.9, gt=0.0, le=1.0)
    queue_limit_within: Seconds = 3600.0
    vain_rate: float = Field(default=0.25, gt=0.0)
    auth_failures: int = Field(default=3, ge=1)
    auth_share: float = Field(default=0.2, ge=0.0, lt=1.0)
    auth_failures_many: int = Field(default=5, ge=1)
    auth_within: Seconds = 300.0
    heartbeat_least: int = Field(default=5, ge=0)
    heartbeat_most: int = Field(default=300, ge=1)
    silent_heartbeats: float = Field(default=1.0, ge=0.5)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two snapshots 6 to 10 s apart: churn stays information there, because a deployment looks the same."""
        return cls(refused_for=4.0)

"""Numbers that the rules about connections and channels (X) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClientThresholds(Settings):
    """Of the rules about connections and channels (X).

    Attributes:
        channel_churn_slow: channels that a client opens and closes a second, from which on it is told; fewer are told
            where the broker closes them.
        channel_churn_fast: from which on it is a warning (catalogue: 10; the documentation calls 100 suspicious).
        channel_churn_for: how long it must have gone on for a warning.
        refused_for: the same where the broker closes each channel with an error: longer than a deployment that
            declares its queues in the wrong order (catalogue: 3 min).
        connection_churn_slow: connections that an application opens and closes a second, from which on it is told.
        connection_churn_fast: from which on it is a warning (catalogue: 1).
        connection_churn_share: and so many a second for each connection that is open (catalogue: 0.1).
        connection_churn_for: how long it must have gone on for a warning (catalogue: 5 min).
        channels_many: channels of one connection that are a warning (catalogue: 100).
        channels_share: the same, as a share of what was negotiated (`channel_max`); at nine tenths it is critical.
        channels_growth: channels that one connection gained without losing any, from which on it is told.
        connections_growth: connections that one application gained within the half minute that clients are held,
            from which on it is told.
        connections_many: connections of one application that are a warning while they grow (catalogue: 1000 in all).
        limit_share: a limit of connections or channels used so far is told (catalogue: 0.9); at all of it, critical.
        auth_failures: refused logins from which on it is told.
        auth_share: of all logins over that protocol; above it, it is a warning (catalogue: 0.2).
        auth_failures_many: and at least so many (catalogue: more than 5 in 5 min).
        auth_within: the time in which they are counted.
        heartbeat_least, heartbeat_most: seconds outside of which a heartbeat is told, and 0, which is off
            (catalogue: 5 and 300; the documentation finds 5 to 20 best).
        silent_heartbeats: heartbeats that a client must have been silent for, and 5 s, which the broker's figures lag;
            it should send twice in each, and the broker gives it up after two.
    """

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
    auth_failures: int = Field(default=3, ge=1)
    auth_share: float = Field(default=0.2, ge=0.0, lt=1.0)
    auth_failures_many: int = Field(default=5, ge=1)
    auth_within: Seconds = 300.0
    heartbeat_least: int = Field(default=5, ge=0)
    heartbeat_most: int = Field(default=300, ge=1)
    silent_heartbeats: float = Field(default=1.0, ge=0.5)

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart: churn stays information there, for a deployment looks the same."""
        return cls(refused_for=4.0)

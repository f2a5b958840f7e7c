"""Thresholds of the rules about connections and channels (X)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClientThresholds(Settings):
    """Thresholds of the rules about connections and channels (X).

    Attributes:
        channel_churn_slow: A client that closes its channels itself is reported from this many channels a second on;
            slower loops are reported where the broker closes them.
        channel_churn_fast: From this many channels a second on, such a loop can become a warning; the RabbitMQ
            documentation calls 100 suspicious.
        channel_churn_for: A loop with that many channels a second is a warning after it has lasted this long.
        refused_for: A loop in which the broker closes each channel with an error is a warning after this long, longer
            than a deployment that declares its queues in the wrong order.
        connection_churn_slow: An application is reported from this many connections a second on that it opens and
            closes.
        connection_churn_fast: From this many connections a second on, a loop can become a warning.
        connection_churn_share: A loop of connections is a warning only with at least this many a second for each open
            connection of the cluster.
        connection_churn_for: A loop of connections is a warning only after it has lasted this long.
        channels_many: A connection with more channels than this is a warning.
        channels_share: A connection that uses more than this share of its negotiated channel_max is a warning; from
            nine tenths on it is critical.
        channels_growth: A connection that opened this many more channels and closed none is reported.
        connections_growth: An application that opened this many more connections within the readings of connections (30
            s) and closed none is reported.
        connections_many: An application with this many connections is a warning while the number of connections of the
            cluster grows.
        limit_share: A limit is a warning when this share of it is used; when all of it is used and clients are refused,
            it is critical.
        auth_failures: Refused logins over one protocol at one node are reported from this number on.
        auth_share: Refused logins are a warning only when they are more than this share of all logins over that
            protocol.
        auth_failures_many: Refused logins are a warning only when there are more than this number of them.
        auth_within: The time in which logins are counted.
        heartbeat_least: A heartbeat of fewer seconds than this is too short; the RabbitMQ documentation recommends 5 to
            20.
        heartbeat_most: A heartbeat of more seconds than this is too long.
        silent_heartbeats: A client is reported after it has sent nothing for this many heartbeat intervals and 5 s, the
            refresh interval of the broker. It should send twice in each interval, and the broker closes its connection
            after two.
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
        """For two snapshots 6 to 10 s apart: churn stays information there, because a deployment looks the same."""
        return cls(refused_for=4.0)

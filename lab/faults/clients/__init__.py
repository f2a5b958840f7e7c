"""Faults of connections and channels (X)."""

from lab.faults.clients import (
    amqp10,
    anonymous_connection,
    auth_failures,
    channel_churn,
    channel_leak,
    channel_limit_reached,
    connection_churn,
    connection_leak,
    connection_limit_reached,
    connection_open_refused,
    heartbeat_extreme,
    heartbeat_loss,
    queue_limit_reached,
)
from lab.faults.fault import FaultSpec

FAULTS: tuple[FaultSpec, ...] = (
    anonymous_connection.SPEC,
    auth_failures.SPEC,
    channel_churn.SPEC,
    channel_leak.SPEC,
    channel_limit_reached.SPEC,
    connection_churn.SPEC,
    connection_leak.SPEC,
    connection_limit_reached.SPEC,
    connection_open_refused.SPEC,
    heartbeat_extreme.SPEC,
    heartbeat_loss.SPEC,
    queue_limit_reached.SPEC,
    *amqp10.SPECS,
)

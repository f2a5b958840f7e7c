"""Rules about connections and channels (X)."""

from diagnosis.contract import Rule
from diagnosis.rules.clients import (
    anonymous_connection,
    auth_failures,
    channel_churn,
    channel_leak,
    connection_churn,
    connection_leak,
    connection_limit_reached,
    heartbeat_extreme,
    heartbeat_loss,
)

RULES: tuple[Rule, ...] = (
    connection_limit_reached.RULE,
    auth_failures.RULE,
    heartbeat_loss.RULE,
    connection_churn.RULE,
    channel_churn.RULE,
    channel_leak.RULE,
    connection_leak.RULE,
    heartbeat_extreme.RULE,
    anonymous_connection.RULE,
)

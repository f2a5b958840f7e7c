"""Rules about what publishers live through (A)."""

from diagnosis.contract import Rule
from diagnosis.rules.publishers import (
    mixed_connection,
    pub_access_refused,
    pub_blocked_by_alarm,
    pub_confirm_stall,
    pub_credit_flow,
    pub_missing_exchange,
    pub_nacked_overflow,
    pub_no_confirms,
    pub_oversized_message,
    pub_sync_confirm,
    pub_transient_in_durable,
    pub_tx_channel,
    pub_unroutable_dropped,
    pub_unroutable_returned,
    publisher_silent,
)

RULES: tuple[Rule, ...] = (
    pub_unroutable_dropped.RULE,
    pub_unroutable_returned.RULE,
    pub_missing_exchange.RULE,
    pub_no_confirms.RULE,
    pub_blocked_by_alarm.RULE,
    pub_confirm_stall.RULE,
    pub_nacked_overflow.RULE,
    pub_tx_channel.RULE,
    pub_credit_flow.RULE,
    pub_sync_confirm.RULE,
    pub_oversized_message.RULE,
    pub_transient_in_durable.RULE,
    mixed_connection.RULE,
    pub_access_refused.RULE,
    publisher_silent.RULE,
)

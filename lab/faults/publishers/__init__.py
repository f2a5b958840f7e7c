"""Faults of publishers (A)."""

from lab.faults.fault import FaultSpec
from lab.faults.publishers import (
    amqp10,
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
    pub_unroutable_alternate,
    pub_unroutable_dropped,
    pub_unroutable_returned,
    pub_unroutable_unlisted,
    unroutable_by_intent,
)

FAULTS: tuple[FaultSpec, ...] = (
    pub_unroutable_dropped.SPEC,
    pub_unroutable_returned.SPEC,
    pub_unroutable_alternate.SPEC,
    pub_unroutable_unlisted.SPEC,
    *unroutable_by_intent.SPECS,
    pub_missing_exchange.SPEC,
    pub_no_confirms.SPEC,
    pub_blocked_by_alarm.SPEC,
    pub_confirm_stall.SPEC,
    pub_nacked_overflow.SPEC,
    pub_tx_channel.SPEC,
    pub_oversized_message.SPEC,
    pub_transient_in_durable.SPEC,
    mixed_connection.SPEC,
    pub_access_refused.SPEC,
    pub_credit_flow.SPEC,
    pub_sync_confirm.SPEC,
    *amqp10.SPECS,
)

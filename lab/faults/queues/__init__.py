"""Faults of queues (C)."""

from lab.faults.fault import FaultSpec
from lab.faults.queues import (
    classic_queue_node_down,
    dead_letter_cycle,
    dead_letters_held,
    dlq_filling,
    dlx_missing,
    hot_queue,
    large_messages,
    maxlen_drop_head,
    orphan_queue,
    qq_segment_growth,
    queue_crashed,
    queue_leak,
    queue_overload,
    stale_head,
    ttl_expiry_loss,
)

FAULTS: tuple[FaultSpec, ...] = (
    maxlen_drop_head.SPEC,
    ttl_expiry_loss.SPEC,
    dlx_missing.SPEC,
    dlq_filling.SPEC,
    dead_letter_cycle.SPEC,
    dead_letters_held.SPEC,
    queue_overload.SPEC,
    orphan_queue.SPEC,
    stale_head.SPEC,
    hot_queue.SPEC,
    queue_leak.SPEC,
    queue_crashed.SPEC,
    classic_queue_node_down.SPEC,
    large_messages.SPEC,
    qq_segment_growth.SPEC,
)

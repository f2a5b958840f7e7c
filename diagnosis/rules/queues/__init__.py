"""Rules about queues by themselves (C)."""

from diagnosis.contract import Rule
from diagnosis.rules.queues import (
    classic_queue_node_down,
    dead_letter_cycle,
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

RULES: tuple[Rule, ...] = (
    maxlen_drop_head.RULE,
    ttl_expiry_loss.RULE,
    dlx_missing.RULE,
    classic_queue_node_down.RULE,
    queue_crashed.RULE,
    dlq_filling.RULE,
    dead_letter_cycle.RULE,
    orphan_queue.RULE,
    queue_overload.RULE,
    hot_queue.RULE,
    stale_head.RULE,
    queue_leak.RULE,
    large_messages.RULE,
    qq_segment_growth.RULE,
)

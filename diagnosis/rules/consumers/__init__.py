"""Rules about what consumers do, or do not (B)."""

from diagnosis.contract import Rule
from diagnosis.rules.consumers import (
    auto_ack_consumer,
    bad_ack_loop,
    consumer_ack_timeout,
    consumer_flapping,
    consumer_tcp_backpressure,
    exclusive_consumer_contention,
    global_prefetch,
    no_consumer,
    orphaned_unacked,
    poison_drop,
    polling_consumer,
    prefetch_hoarder,
    prefetch_too_small,
    requeue_loop,
    sac_stuck,
    slow_consumer,
    stuck_consumer,
    zombie_connection,
)

RULES: tuple[Rule, ...] = (
    poison_drop.RULE,
    stuck_consumer.RULE,
    sac_stuck.RULE,
    requeue_loop.RULE,
    no_consumer.RULE,
    slow_consumer.RULE,
    prefetch_too_small.RULE,
    prefetch_hoarder.RULE,
    consumer_tcp_backpressure.RULE,
    zombie_connection.RULE,
    consumer_ack_timeout.RULE,
    bad_ack_loop.RULE,
    consumer_flapping.RULE,
    exclusive_consumer_contention.RULE,
    orphaned_unacked.RULE,
    polling_consumer.RULE,
    auto_ack_consumer.RULE,
    global_prefetch.RULE,
)

"""Faults of consumers (B)."""

from lab.faults.consumers import (
    auto_ack_consumer,
    bad_ack_loop,
    consumer_ack_timeout,
    consumer_flapping,
    consumer_tcp_backpressure,
    exclusive_consumer_contention,
    global_prefetch,
    no_consumer,
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
from lab.faults.fault import FaultSpec

FAULTS: tuple[FaultSpec, ...] = (
    stuck_consumer.SPEC,
    sac_stuck.SPEC,
    slow_consumer.SPEC,
    prefetch_too_small.SPEC,
    prefetch_hoarder.SPEC,
    no_consumer.SPEC,
    requeue_loop.SPEC,
    poison_drop.SPEC,
    consumer_ack_timeout.SPEC,
    zombie_connection.SPEC,
    consumer_tcp_backpressure.SPEC,
    bad_ack_loop.SPEC,
    consumer_flapping.SPEC,
    exclusive_consumer_contention.SPEC,
    polling_consumer.SPEC,
    auto_ack_consumer.SPEC,
    global_prefetch.SPEC,
)

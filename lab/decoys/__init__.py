"""Healthy situations that look like faults: diagnosis must not warn about them. `DECOYS` is the table.

`python -m lab.faults decoy.NAME ...` runs one, as it runs a fault.
"""

from collections.abc import Mapping

from lab.decoys import (
    amqp10_clients,
    batches,
    burst,
    delays,
    deploy_restart,
    drained_and_deleted,
    fanout_alone,
    health_checks,
    idle_quorum,
    leader_moves,
    long_jobs,
    native_clients,
    or_else,
    own_next_step,
    polling,
    polling_batches,
    reply_queues,
    retry_delay,
    slow_start,
    stream_with_retention,
    subscriptions,
    two_shovels,
)
from lab.faults.fault import FaultSpec

DECOYS: Mapping[str, FaultSpec] = {
    module.SPEC.name: module.SPEC
    for module in (
        batches,
        burst,
        deploy_restart,
        polling,
        fanout_alone,
        long_jobs,
        retry_delay,
        delays,
        idle_quorum,
        leader_moves,
        polling_batches,
        own_next_step,
        slow_start,
        or_else,
        health_checks,
        reply_queues,
        drained_and_deleted,
        stream_with_retention,
        subscriptions,
        two_shovels,
        native_clients,
        amqp10_clients,
    )
}

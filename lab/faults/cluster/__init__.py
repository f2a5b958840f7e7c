"""Faults of the cluster (E)."""

from lab.faults.cluster import (
    hung_peer,
    leader_imbalance,
    link_circular,
    link_doubled,
    link_down,
    link_stalled,
    link_target_refuses,
    metadata_minority,
    mirror_unsynchronised,
    node_down,
    node_draining,
    partition,
    quorum_queue_leaderless,
    quorum_queue_minority,
    quorum_queue_under_replicated,
    stream_replica_missing,
    version_skew,
)
from lab.faults.fault import FaultSpec

FAULTS: tuple[FaultSpec, ...] = (
    node_down.SPEC,
    node_draining.SPEC,
    hung_peer.SPEC,
    partition.NETWORK_PARTITION,
    partition.PARTITION_HANDLING_IGNORE,
    metadata_minority.SPEC,
    quorum_queue_minority.SPEC,
    quorum_queue_leaderless.SPEC,
    quorum_queue_under_replicated.SPEC,
    stream_replica_missing.SPEC,
    mirror_unsynchronised.SPEC,
    link_down.SPEC,
    link_target_refuses.SPEC,
    link_stalled.SPEC,
    link_circular.SPEC,
    link_doubled.SPEC,
    link_doubled.FEDERATION,
    leader_imbalance.SPEC,
    version_skew.SPEC,
)

"""Rules about nodes together: replication, partitions, links (E)."""

from diagnosis.contract import Rule
from diagnosis.rules.cluster import (
    distribution_congestion,
    hung_peer,
    leader_imbalance,
    link_down,
    metadata_minority,
    mirror_unsynchronised,
    network_partition,
    node_down,
    node_draining,
    partition_handling_ignore,
    quorum_queue_leaderless,
    quorum_queue_minority,
    quorum_queue_under_replicated,
    stream_replica_missing,
    version_skew,
)

RULES: tuple[Rule, ...] = (
    network_partition.RULE,
    hung_peer.RULE,
    node_down.RULE,
    metadata_minority.RULE,
    quorum_queue_minority.RULE,
    quorum_queue_leaderless.RULE,
    quorum_queue_under_replicated.RULE,
    stream_replica_missing.RULE,
    mirror_unsynchronised.RULE,
    link_down.RULE,
    node_draining.RULE,
    distribution_congestion.RULE,
    leader_imbalance.RULE,
    version_skew.RULE,
    partition_handling_ignore.RULE,
)

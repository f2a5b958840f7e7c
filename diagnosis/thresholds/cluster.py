"""Thresholds of the rules about the cluster: replication, partitions, links (E)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClusterThresholds(Settings):
    """Thresholds of the rules about the cluster: replication, partitions, links (E)."""

    seen: Seconds = 4.0
    node_down_for: Seconds = 60.0
    draining_for: Seconds = 6600.0
    replica_missing_for: Seconds = 300.0
    leaderless_for: Seconds = 20.0
    leader_share: float = Field(default=0.6, gt=0.0, lt=1.0)
    leader_queues: int = Field(default=10, ge=2)
    skew_for: Seconds = 3600.0
    mirror_for: Seconds = 300.0
    link_for: Seconds = 60.0
    partition_kept: Seconds = 40.0
    hung_for: Seconds = 10.0
    link_busy: float = Field(default=90e6, gt=0.0)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two readings 6 to 10 s apart."""
        return cls(
            node_down_for=4.0,
            replica_missing_for=4.0,
            leaderless_for=4.0,
            mirror_for=4.0,
            link_for=4.0,
            hung_for=0.0,
        )

"""Thresholds of the rules about nodes together: replication, partitions, links (E)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClusterThresholds(Settings):
    """Of the rules about nodes together: replication, partitions, links (E).

    Attributes:
        seen: The state of a node or replica is reported after this long, two polls; starting nodes and new queues pass
            through it.
        node_down_for: A node that is down for this long is a warning; one that is restarted comes back sooner.
        draining_for: A node that is in maintenance for this long is a warning; slightly less than two hours are
            remembered.
        replica_missing_for: Replicas that are missing on a running node for this long are a warning; one that comes
            back catches up first.
        leaderless_for: A quorum queue without a leader for this long is critical; an election takes seconds.
        leader_share: Leaders are out of balance when one node has more than this share of the leaders and of their
            traffic.
        leader_queues: Fewer quorum queues and streams than this are no imbalance.
        skew_for: Nodes that run different versions for this long are a warning; a rolling upgrade is over sooner.
        mirror_for: A mirror that lacks messages for this long is a warning; one that has just joined is synchronised
            sooner.
        link_for: A shovel or federation link that does not run for this long is a warning; it retries every few
            seconds.
        partition_kept: A partition that lasts this long is not healed by the cluster; autoheal and pause_minority act
            within seconds.
        hung_for: A peer is frozen when requests that involve all nodes have had no answer for this long, while health
            checks answer.
        link_busy: A link between two nodes is full from this many bytes a second in one direction; a 1 Gbit/s network
            carries little more.
    """

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
    def one_shot(cls) -> Self:
        """For two readings 6 to 10 s apart."""
        return cls(
            node_down_for=4.0,
            replica_missing_for=4.0,
            leaderless_for=4.0,
            mirror_for=4.0,
            link_for=4.0,
            hung_for=0.0,
        )

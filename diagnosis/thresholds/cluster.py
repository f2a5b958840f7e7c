"""Numbers that the rules about nodes together: replication, partitions, links (E) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ClusterThresholds(Settings):
    """Of the rules about nodes together: replication, partitions, links (E).

    Attributes:
        seen: how long a state of nodes or replicas must be seen before it is told; two polls (catalogue), for nodes
            that start and queues that are new tell it for a moment.
        node_down_for: how long a node must be away before that is a warning; one that is restarted is back sooner.
        draining_for: how long a node may be in maintenance (catalogue: 2 h, of which slightly less is remembered).
        replica_missing_for: how long replicas may be away from a node that runs; one that comes back reads up first.
        leaderless_for: how long a queue may have no leader before its clients count as stopped; elections take seconds.
        leader_share: leaders on one node, of all, more than this (catalogue: 0.6).
        leader_queues: replicated queues and streams, fewer of which are no imbalance.
        skew_for: how long nodes may run different versions; a rolling upgrade does so (catalogue: 1 h).
        mirror_for: how long a mirror may be without the messages that others have; it is filled in the meantime.
        link_for: how long a shovel or federation link may be away; it tries again every few seconds.
        partition_kept: how long a partition lasts that no strategy heals; `autoheal` and `pause_minority` act within
            seconds, and a large node takes its time to stop.
        hung_for: how long the endpoints that ask all nodes must have been silent while health checks answer.
        link_busy: bytes a second over one link between two nodes, in one direction, that come near what a network of
            1 Gbit/s carries.
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
        """For two looks 6 to 10 s apart."""
        return cls(
            node_down_for=4.0,
            replica_missing_for=4.0,
            leaderless_for=4.0,
            mirror_for=4.0,
            link_for=4.0,
            hung_for=0.0,
        )

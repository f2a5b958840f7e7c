"""What the broker itself sampled of its last ten minutes, of the cluster as a whole."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePast:
    """The extremes of one node among its samples.

    Attributes:
        mem_used: the highest, in bytes.
        disk_free: the lowest, in bytes.
    """

    name: str
    mem_used: int | None = None
    disk_free: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPast:
    """Counters of the whole cluster at regular times.

    Attributes:
        begin: time of the first sample, seconds since 1970 by our clock.
        step: seconds between two samples.
        published, delivered: messages published by all channels, and delivered to them, at each sample. The broker
            pads samples before the first event with zeros.
    """

    begin: float
    step: float
    published: tuple[int, ...]
    delivered: tuple[int, ...]
    nodes: tuple[NodePast, ...] = ()

"""Thresholds of the rules about topology and configuration (G)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Settings


class TopologyThresholds(Settings):
    """Thresholds of the rules about topology and configuration (G).

    Attributes:
        unreplicated_nodes: Durable queues with one replica are reported on clusters of at least this many nodes.
        binding_lost: A binding that was removed is reported once this many messages were not routed since.
        usual_features: Deprecated features that every broker uses, and that are therefore not reported.
    """

    unreplicated_nodes: int = Field(default=3, ge=2)
    binding_lost: int = Field(default=1, ge=1)
    usual_features: tuple[str, ...] = ("management_metrics_collection",)

    @classmethod
    def one_shot(cls) -> Self:
        """For two polls 6 to 10 s apart."""
        return cls()

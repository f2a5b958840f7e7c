"""Thresholds of the rules about topology and configuration (G)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class TopologyThresholds(Settings):
    """Thresholds of the rules about topology and configuration (G)."""

    unreplicated_nodes: int = Field(default=3, ge=2)
    binding_lost: int = Field(default=1, ge=1)
    bindings_least: int = Field(default=500, ge=1)
    bindings_gained: int = Field(default=50, ge=1)
    bindings_for: Seconds = 180.0
    bindings_many: int = Field(default=10_000, ge=1)
    bindings_headers: int = Field(default=1000, ge=1)
    uneven_share: float = Field(default=0.9, gt=0.5, le=1.0)
    uneven_messages: int = Field(default=50, ge=10)
    usual_features: tuple[str, ...] = ("management_metrics_collection",)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two polls 6 to 10 s apart."""
        return cls(bindings_gained=10, bindings_for=4.0)

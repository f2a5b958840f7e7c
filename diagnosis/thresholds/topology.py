"""Numbers that the rules about how things are declared and configured (G) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Settings


class TopologyThresholds(Settings):
    """Of the rules about how things are declared and configured (G).

    Attributes:
        unreplicated_nodes: nodes of a cluster from which on a durable queue with one copy is worth telling.
        binding_lost: messages that an exchange took and passed to nobody, after a binding went, from which on it is
            told.
        usual_features: deprecated features that every broker uses, and that are therefore no news.
    """

    unreplicated_nodes: int = Field(default=3, ge=2)
    binding_lost: int = Field(default=1, ge=1)
    usual_features: tuple[str, ...] = ("management_metrics_collection",)

    @classmethod
    def one_shot(cls) -> Self:
        """For two looks 6 to 10 s apart."""
        return cls()

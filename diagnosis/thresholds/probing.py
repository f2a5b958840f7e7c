"""Thresholds of the rules about what only a client measures (H)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ProbeThresholds(Settings):
    """Thresholds of the rules about what only a client measures (H)."""

    path_slow: Seconds = 0.02
    path_bad: Seconds = 0.1
    differs: float = Field(default=3.0, gt=1.0)
    differs_least: Seconds = 0.02
    differs_bad: Seconds = 0.1
    differs_samples: int = Field(default=10, ge=1)
    doubt_least: Seconds = 0.005
    doubt_bad: Seconds = 1.0
    doubt_share: float = Field(default=0.1, gt=0.0, le=1.0)

    @classmethod
    def as_if_lasting(cls) -> Self:
        """For two looks 6 to 10 s apart."""
        return cls(differs_samples=3)

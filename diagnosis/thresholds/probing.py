"""Thresholds of the rules about the experience of a client, measured by probes (H)."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ProbeThresholds(Settings):
    """Thresholds of the rules about the experience of a client, measured by probes (H).

    Attributes:
        path_slow: A TCP connect whose median is at least this slow is reported; within one site it takes less than 1
            ms.
        path_bad: A TCP connect whose median is at least this slow is a warning.
        differs: A node differs when a measurement takes this many times as long as the median of its peers.
        differs_least: A node differs only when a measurement takes at least this much longer than at its peers.
        differs_bad: A node that takes this much longer than its peers is a warning.
        differs_samples: A measurement with fewer samples in the last minute counts only together with another one.
        doubt_least: A delay of the probe process itself (p99) below this is not reported.
        doubt_bad: A delay of the probe process itself (p99) from here on is a warning; no latency of the probes means
            anything then.
        doubt_share: A delay of the probe process spoils its figures when it exceeds this share of a median confirm.
    """

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
    def one_shot(cls) -> Self:
        """For two polls 6 to 10 s apart."""
        return cls(differs_samples=3)

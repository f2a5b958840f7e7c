"""Numbers that the rules about what only a client feels (H) judge by."""

from typing import Self

from pydantic import Field

from ackscope.settings import Seconds, Settings


class ProbeThresholds(Settings):
    """Of the rules about what only a client feels (H).

    Attributes:
        path_slow: a TCP connect that takes this long, in the median, is no way within one site (catalogue: below
            1 ms there).
        path_bad: one that takes this long is a warning.
        differs: a node is an odd one when it takes so many times as long as its peers.
        differs_least: and this much longer.
        differs_bad: a warning when it is this much longer.
        differs_samples: of how many answers in the last minute; fewer tell nothing by themselves, for the odd one
            among them makes the median.
        doubt_least: a delay of the probe process itself, p99, that is worth telling.
        doubt_bad: one that is a warning: no latency of the probes means anything then.
        doubt_share: it spoils figures when it is more than this share of a median confirm, as the probes say too.
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
        """For two looks 6 to 10 s apart."""
        return cls(differs_samples=3)

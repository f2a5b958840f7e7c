"""One good reading of one family."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackscope.clock import Instant


@dataclass(frozen=True, slots=True)
class Reading:
    """One good reading.

    Attributes:
        at: when it was complete.
        seconds: how long it took, decoding included.
    """

    value: Any
    gaps: Mapping[str, int]
    at: Instant
    seconds: float

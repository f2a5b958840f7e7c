"""How far the pipeline is behind, as it says itself."""

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import orjson

from ackscope.errors import DataError

STATUS = "_status.json"
"""Below the rollup folder; `ackscope pipeline stream` writes it every 10 s at least."""


@dataclass(frozen=True, slots=True)
class PipelineLag:
    """What the pipeline said last.

    Attributes:
        seconds: how old the oldest landed row was that was not rolled up; 0 where nothing waited.
        told_at: when it said so, seconds since 1970.
    """

    seconds: float
    reported_at: float

    def at(self, wall: float) -> float:
        """The lag at a moment: it grows while the pipeline says nothing."""
        return self.seconds + max(0.0, wall - self.reported_at)


def read_lag(root: Path) -> PipelineLag | None:
    """What it said last; None where there is no such file, or it tells no lag.

    Raises:
        DataError: the file cannot be read.
    """
    path = root / STATUS
    try:
        document = orjson.loads(path.read_bytes())
        if document.get("lag_seconds") is None:
            return None
        lag = PipelineLag(float(document["lag_seconds"]), datetime.fromisoformat(document["updated_at"]).timestamp())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); look at its disk and owner") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: is no status of the pipeline; `ackscope pipeline stream` writes it anew") from None
    if not math.isfinite(lag.seconds):
        raise DataError(f"{path}: tells no number of seconds; `ackscope pipeline stream` writes it anew")
    return lag

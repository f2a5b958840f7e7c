"""The pipeline's lag, from the status files of its jobs."""

import math
from dataclasses import dataclass
from datetime import datetime

import orjson

from ackscope.errors import DataError
from ackscope.object_path import Place

STATUS = "_status.json"
"""Name below the rollup directory; `ackscope pipeline stream` writes it at least every 10 s."""
_SHARDS = "_status-*.json"
"""The same of jobs with `--clusters`."""


@dataclass(frozen=True, slots=True)
class PipelineLag:
    """The pipeline's last report of its lag.

    Attributes:
        seconds: age of the oldest landed row that was not rolled up; 0 if there was none.
        reported_at: time of the report, seconds since 1970.
    """

    seconds: float
    reported_at: float

    def at(self, wall: float) -> float:
        """Return the lag at `wall`, seconds since 1970. It grows until the next report."""
        return self.seconds + max(0.0, wall - self.reported_at)


def read_lag(root: Place) -> PipelineLag | None:
    """Read the last report of each job and return that of the latest one; None if there is no file or no lag in it.

    Raises:
        DataError: a file cannot be read.
    """
    found = (_read(path) for path in (root / STATUS, *root.glob(_SHARDS)))
    return max((lag for lag in found if lag is not None), key=lambda lag: lag.seconds - lag.reported_at, default=None)


def _read(path: Place) -> PipelineLag | None:
    try:
        document = orjson.loads(path.read_bytes())
        if document.get("lag_seconds") is None:
            return None
        lag = PipelineLag(float(document["lag_seconds"]), datetime.fromisoformat(document["updated_at"]).timestamp())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its disk and owner") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError(f"{path}: malformed pipeline status; `ackscope pipeline stream` rewrites it") from None
    if not math.isfinite(lag.seconds):
        raise DataError(f"{path}: the lag is not a finite number; `ackscope pipeline stream` rewrites it")
    return lag

"""Settings of what is read of the past."""

from pathlib import Path

from pydantic import Field

from ackscope.settings import Seconds, Settings


class HistorySettings(Settings):
    """Where the pipeline's results are, for diagnosis to know what is usual.

    Attributes:
        rollups: the folder that `ackscope pipeline` writes rollups to; without it nothing is known of what is usual,
            and `ackscope_pipeline_lag_seconds` is not told.
        every: how often it is looked at.
    """

    rollups: Path | None = None
    every: Seconds = Field(default=60.0, ge=1, le=3600)

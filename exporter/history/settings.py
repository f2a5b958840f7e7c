"""Settings of the history."""

from pydantic import Field

from ackscope.settings import Folder, Seconds, Settings


class HistorySettings(Settings):
    """Where the pipeline's rollups are, for baselines.

    Attributes:
        rollups: directory, or prefix of a bucket, that `ackscope pipeline` writes rollups to. If unset, baselines are
            disabled and `ackscope_pipeline_lag_seconds` is not exported.
        every: how often it is read.
    """

    rollups: Folder | None = None
    every: Seconds = Field(default=60.0, ge=1, le=3600)

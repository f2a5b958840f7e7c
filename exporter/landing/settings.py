"""Settings of the landing writer."""

from pathlib import Path

from pydantic import Field

from ackscope.settings import Seconds, Settings


class LandingSettings(Settings):
    """Where and how often landing files are written.

    Attributes:
        directory: root of the landing tables; without it nothing is landed.
        rotate: time after which rows become a file; what readers see is at most this old.
        file_rows: rows of a table that become a file earlier than that.
        buffer_rows: rows of all tables that wait at most while the disk does not take them; older ones are dropped.
    """

    directory: Path | None = None
    rotate: Seconds = Field(default=10.0, ge=0.1, le=3600)
    file_rows: int = Field(default=50_000, ge=1)
    buffer_rows: int = Field(default=200_000, ge=1)

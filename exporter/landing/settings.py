"""Settings of the landing writer."""

from pathlib import Path

from pydantic import Field

from ackscope.settings import Seconds, Settings


class LandingSettings(Settings):
    """Where and how often landing files are written, and how much of them is kept.

    Attributes:
        directory: root of the landing tables; without it nothing is landed.
        rotate: time after which rows become a file; what readers see is at most this old.
        file_rows: rows of all tables that become files earlier than that.
        buffer_rows: rows of all tables that wait at most while the disk does not take them; older ones are dropped.
        max_bytes: bytes that the files of the exporter may take; beyond that it removes its oldest ones.
        max_age: age at which the exporter removes its files.
        max_channels: channels of a cluster that are followed at most, those in trouble first.
        max_consumers: consumers of a cluster that are followed at most, those in trouble first.
    """

    directory: Path | None = None
    rotate: Seconds = Field(default=10.0, ge=0.1, le=3600)
    file_rows: int = Field(default=50_000, ge=1)
    buffer_rows: int = Field(default=200_000, ge=1)
    max_bytes: int = Field(default=10 * 2**30, ge=2**20)
    max_age: Seconds = Field(default=7 * 86400.0, ge=3600, le=3660 * 86400)
    max_channels: int = Field(default=1000, ge=0)
    max_consumers: int = Field(default=1000, ge=0)

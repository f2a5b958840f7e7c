"""Settings of the landing writer."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from ackscope.object_path import ObjectPath
from ackscope.settings import Folder, Seconds, Settings


class LandingSettings(Settings):
    """Where and how often landing files are written, and how much is kept.

    Attributes:
        directory: root of the landing tables, or a prefix of a bucket such as `s3://bucket/prefix`. If unset, nothing
            is landed.
        spool: local directory of files that wait for the bucket; required for one.
        spool_bytes: size of the spool; beyond it the oldest files are dropped.
        rotate: interval at which rows are written to files; the maximum delay for readers.
        file_rows: number of buffered rows, all tables together, that triggers an earlier write.
        buffer_rows: limit of buffered rows, all tables together, while the disk is too slow; the oldest are dropped.
        max_bytes: total size of the exporter's files; beyond it the oldest are removed. Not in a bucket.
        max_age: age at which files are removed. Not in a bucket.
        max_channels: channels landed per cluster, those in trouble first.
        max_consumers: consumers landed per cluster, those in trouble first.
    """

    directory: Folder | None = None
    spool: Path | None = None
    spool_bytes: int = Field(default=2**30, ge=2**20)
    rotate: Seconds = Field(default=10.0, ge=0.1, le=3600)
    file_rows: int = Field(default=50_000, ge=1)
    buffer_rows: int = Field(default=200_000, ge=1)
    max_bytes: int = Field(default=10 * 2**30, ge=2**20)
    max_age: Seconds = Field(default=7 * 86400.0, ge=3600, le=3660 * 86400)
    max_channels: int = Field(default=1000, ge=0)
    max_consumers: int = Field(default=1000, ge=0)

    @field_validator("directory")
    @classmethod
    def _is_a_folder(cls, value: Folder | None) -> Folder | None:
        if isinstance(value, Path) and value.exists() and not value.is_dir():
            raise ValueError(f"{value} is not a directory; give one, or a path that does not exist yet")
        return value

    @model_validator(mode="after")
    def _spool_for_bucket(self) -> Self:
        if isinstance(self.directory, ObjectPath) and self.spool is None:
            raise ValueError("spool: must be set for a bucket: a local directory of files that wait for it")
        return self

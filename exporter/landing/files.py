"""Landing files on disk: written atomically, removed when too old or too large in total.

Readers never see a partial file: it is written under a hidden name, fsynced, renamed, and its directory fsynced. Only
files named by this module are removed, including those that `ackscope pipeline compact` merged: their name has the
time of the newest part.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import LANDING

_COMPACTED = "compacted-"
_NAME = re.compile(rf"(?:{_COMPACTED})?(\d{{8}}T\d{{6}})-[0-9a-f]{{8}}-\d{{6,}}\.parquet")
_UNFINISHED = re.compile(r"\.(\d{8}T\d{6})-[0-9a-f]{8}-\d{6,}\.parquet\.tmp")
_FOLDER = re.compile(r"date=\d{4}-\d\d-\d\d")
_HOUR, _SECOND = len("20231114T22"), len("20231114T221320")
_LEFT_OVER = 3600.0
"""Seconds after which an unfinished file is abandoned."""


class ExpiredFiles(NamedTuple):
    """The files that were removed, and those that could not be.

    Attributes:
        files: number of files removed.
        bytes: their size.
        errors: files that could not be removed.
        trouble: the first error message; None without an error.
    """

    files: int
    bytes: int
    errors: int
    trouble: str | None


class LandingFiles:
    """The exporter's files below one directory. Not thread-safe.

    Args:
        root: the landing directory.

    Attributes:
        folder_bytes: their total size; None before the first scan.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._run_id, self._counter = uuid4().hex[:8], count()
        self.folder_bytes: int | None = None

    def write(self, folder: str, table: pa.Table, wall: float) -> int:
        """Write a new file and return its size in bytes.

        Raises:
            OSError: the disk refuses it.
            pa.ArrowException: the table cannot be written as Parquet.
        """
        place = self._root / folder
        place.mkdir(parents=True, exist_ok=True)
        final = place / f"{_moment(wall)}-{self._run_id}-{next(self._counter):06d}.parquet"
        hidden = place / f".{final.name}.tmp"
        try:
            with hidden.open("wb") as sink:
                pq.write_table(table, sink, compression="zstd")
                sink.flush()
                os.fsync(sink.fileno())
                size = sink.tell()
            hidden.rename(final)
            _sync_folder(place)
        except (OSError, pa.ArrowException):
            # Remove the partial file: its rows will be written again to another file, or dropped.
            with suppress(OSError):
                hidden.unlink(missing_ok=True)
                final.unlink(missing_ok=True)
            raise
        if self.folder_bytes is not None:
            self.folder_bytes += size
        return size

    def expire(self, wall: float, max_bytes: int, max_age: float, *, look: bool) -> ExpiredFiles:
        """Remove files that are too old, and the oldest while the total size is too large.

        Past hours are removed as a whole: a rollup of half an hour's rows would stand for the whole hour. `look` scans
        the directory; without it the sizes are those of the last scan plus what was written since.
        """
        if look or self.folder_bytes is None:
            self.folder_bytes = sum(_size(path) for path in self._own(_NAME))
        files = freed = errors = 0
        trouble = None
        for path, size in self._too_many(wall, max_bytes, max_age):
            try:
                path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                errors, trouble = errors + 1, trouble or f"{path}: {error.strerror or error}"
                continue
            files, freed = files + 1, freed + size
            self.folder_bytes = max(0, self.folder_bytes - size)
            if not path.parent.name.endswith(_day(wall)):
                with suppress(OSError):
                    path.parent.rmdir()
        return ExpiredFiles(files, freed, errors, trouble)

    def waiting(self) -> list[tuple[Path, int]]:
        """All files with their size, the oldest first."""
        return [(path, _size(path)) for path in sorted(self._own(_NAME), key=_written)]

    @staticmethod
    def written_at(path: Path) -> float:
        """When a file was written according to its name, seconds since 1970."""
        return datetime.strptime(_written(path)[:_SECOND], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).timestamp()

    def sweep(self, wall: float) -> None:
        """Remove unfinished files that a killed exporter left behind."""
        oldest = _moment(wall - _LEFT_OVER)
        for path in self._own(_UNFINISHED):
            if path.name[1:] < oldest:
                with suppress(OSError):
                    path.unlink()

    def _too_many(self, wall: float, max_bytes: int, max_age: float) -> Iterator[tuple[Path, int]]:
        """Files to remove, oldest first."""
        oldest, present = _moment(wall - max_age), _moment(wall)[:_HOUR]
        last = ""
        for day in sorted({folder.name for folder in self._folders()}):
            full = self.folder_bytes is not None and self.folder_bytes > max_bytes
            if not full and day.removeprefix("date=").replace("-", "") > oldest[:8]:
                return
            for path in sorted(self._own(_NAME, day), key=_written):
                hour = _written(path)[:_HOUR]
                over = self.folder_bytes is not None and self.folder_bytes > max_bytes
                if _written(path) >= oldest and not over and (hour != last or hour == present):
                    break
                last = hour
                yield path, _size(path)

    def _folders(self, day: str = "date=*") -> Iterator[Path]:
        for name in LANDING:
            for folder in (self._root / name).glob(f"cluster=*/{day}"):
                if _FOLDER.fullmatch(folder.name):
                    yield folder

    def _own(self, name: re.Pattern[str], day: str = "date=*") -> Iterator[Path]:
        for folder in self._folders(day):
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)


def _written(path: Path) -> str:
    """The part of the name with the time and the id."""
    return path.name.removeprefix(_COMPACTED)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _moment(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y%m%dT%H%M%S")


def _day(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Where data files are written and read: one object that also works in an executor.

Paths are relative to the rollup folder. `LocalStore` is a local or mounted folder; a store of another kind needs the
same methods, and is sent to executors.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from pipeline.storage.durable import atomic_write, sync_folder, write_error


class FileStore(Protocol):
    """Immutable data files, each complete or absent."""

    def location(self, path: str) -> tuple[fs.FileSystem, str]:
        """The file system of a file, and its path there."""
        ...

    def renew(self, path: str) -> int | None:
        """Restart the grace period of a file; its number of rows, or None if it is absent or damaged."""
        ...

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a whole file, durably.

        Raises:
            DataError: it cannot be written; nothing of the attempt counts.
        """
        ...

    def sync(self, path: str) -> None:
        """Make the name of a file that somebody else wrote durable.

        Raises:
            DataError: the disk refuses it.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A local or mounted folder; every executor must see it under the same path."""

    root: Path

    def location(self, path: str) -> tuple[fs.FileSystem, str]:
        """The local file system, and the whole path."""
        return fs.LocalFileSystem(), str(self.root / path)

    def renew(self, path: str) -> int | None:
        """Set its time to now."""
        final = self.root / path
        with suppress(OSError, pa.ArrowException):
            rows = pq.read_metadata(final).num_rows
            os.utime(final)
            return int(rows)
        return None

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a temporary file of a name of its own, fsync and rename it: two attempts do not meet."""
        final = self.root / path
        try:
            atomic_write(final, fill, token=os.urandom(4).hex())
        except pa.ArrowException as error:
            raise write_error(final, OSError(str(error))) from None

    def sync(self, path: str) -> None:
        """Fsync its folder."""
        sync_folder((self.root / path).parent)

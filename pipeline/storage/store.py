"""Where data files and manifests are written: one object that also works in an executor.

Paths are relative to the rollup folder. `LocalStore` is a local or mounted folder, `ObjectStore` a prefix of a bucket.
Both are sent to executors.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from ackscope.arrow_files import arrow_path, file_system, footer
from ackscope.errors import DataError
from ackscope.manifest import Manifest, encode, manifest_path, read
from ackscope.object_path import ConflictError, ObjectPath, Place
from pipeline.storage.durable import atomic_write, content_of, sync_folder, write_error


class LostCommitError(DataError):
    """Another writer committed meanwhile, so nothing of this one counts."""


class FileStore(Protocol):
    """Immutable data files, each complete or absent, and the manifest that is replaced atomically."""

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

    def check(self, manifest: Manifest) -> None:
        """Check that a manifest counts, before anything that follows from it is published.

        Raises:
            LostCommitError: another writer committed meanwhile.
        """
        ...

    def commit(self, before: Manifest, after: Manifest, replaced: Iterable[str], now: float) -> Manifest:
        """Replace the manifest, durably; return the committed one.

        Args:
            before: the manifest that counts now.
            after: the new one.
            replaced: files that do not count any more; they stay for `GRACE_SECONDS`.
            now: seconds since 1970.

        Raises:
            DataError: it cannot be written, or another writer committed meanwhile; nothing has changed.
        """
        ...


def store_of(root: Place) -> FileStore:
    """The store of a rollup folder."""
    return ObjectStore(root) if isinstance(root, ObjectPath) else LocalStore(root)


@dataclass(frozen=True, slots=True)
class LocalStore:
    """A local or mounted folder; every executor must see it under the same path. Its owner holds the writer lock."""

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

    def check(self, manifest: Manifest) -> None:
        """Do nothing: the writer lock is held."""

    def commit(self, before: Manifest, after: Manifest, replaced: Iterable[str], now: float) -> Manifest:  # noqa: ARG002
        """Rename the new manifest into place; the grace period of a file starts with its own time."""
        for it in replaced:
            # It starts now, not when the file was written.
            with suppress(OSError):
                os.utime(self.root / it)
        path = manifest_path(self.root, after.cluster)
        atomic_write(path, partial(_write_bytes, encode(after)))
        sync_folder(path.parent)
        return after


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A prefix of a bucket.

    The manifest is replaced only if it is the version that the transaction started from, whoever holds the lease. The
    time of a file cannot be set, so the manifest remembers when files were replaced.
    """

    root: ObjectPath

    def location(self, path: str) -> tuple[fs.FileSystem, str]:
        """The file system of the bucket, and the key."""
        return file_system(self.root), arrow_path(self.root / path)

    def renew(self, path: str) -> int | None:
        """Only look: while a lease is held, nobody removes files, and without it no commit succeeds."""
        with suppress(FileNotFoundError, pa.ArrowException):
            return int(footer(self.root / path).num_rows)
        return None

    def write(self, path: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write it unless it is there: the name says what is in it, and somebody may be reading it."""
        final = self.root / path
        try:
            content = content_of(fill)
        except pa.ArrowException as error:
            raise write_error(self.root / path, OSError(str(error))) from None
        try:
            final.write_version(content)
        except ConflictError:
            if self.renew(path) is None:
                final.write_bytes(content)

    def sync(self, path: str) -> None:
        """Do nothing: an object that was written is durable."""

    def check(self, manifest: Manifest) -> None:
        """Read it again: the lease may be lost."""
        if read(self.root, manifest.cluster).stored != manifest.stored:
            raise _lost(manifest_path(self.root, manifest.cluster))

    def commit(self, before: Manifest, after: Manifest, replaced: Iterable[str], now: float) -> Manifest:
        """Replace the object if it is still the version that was read."""
        named = {it.path for files in after.tables.values() for it in files}
        ended = dict.fromkeys(replaced, now) | dict(after.replaced)
        after = replace(after, replaced={path: at for path, at in ended.items() if path not in named})
        path = manifest_path(self.root, after.cluster)
        try:
            stored = path.write_version(encode(after), before.stored)  # type: ignore[union-attr]  # of an object
        except ConflictError:
            raise _lost(path) from None
        return replace(after, stored=stored)


def _lost(path: Place) -> LostCommitError:
    return LostCommitError(
        f"{path}: another writer committed meanwhile, so nothing of this one counts; let only one job at a time write "
        "a cluster"
    )


def _write_bytes(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

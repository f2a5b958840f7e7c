"""The rollup folder: immutable files, a catalog a cluster that says which of them count, and one writer at a time."""

import fcntl
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson

from ackscope.clock import Clock, SystemClock
from ackscope.errors import DataError
from ackscope.manifest import FOLDER, GRACE_SECONDS, Manifest, ManifestCache, clusters
from ackscope.tables import ROLLUPS
from pipeline.stop import StoppedError
from pipeline.storage.durable import atomic_write, remove
from pipeline.storage.layout import ROLLUP_FILE, TEMPORARY_FILE
from pipeline.storage.transaction import Transaction

log = logging.getLogger(__name__)

STATUS = "_status.json"
_LOCK = "_lock"
_LOCK_RETRY_SECONDS = 0.02
"""Seconds until the lock is tried again: a wait in the kernel would hear no wish to stop."""


class Rollups:
    """The rollup folder, made if it is not there.

    Args:
        root: the folder.
        clock: tells what is old.
        go_on: asked while it waits for another writer.

    Attributes:
        root: the folder.

    Raises:
        DataError: it cannot be made or written.
    """

    def __init__(self, root: Path, clock: Clock | None = None, go_on: Callable[[], bool] = lambda: True) -> None:
        self.root = root
        self._clock, self._go_on = clock or SystemClock(), go_on
        self._manifests = ManifestCache()
        try:
            root.mkdir(parents=True, exist_ok=True)
            (root / _LOCK).touch()
        except OSError as error:
            raise DataError(
                f"--rollups {root}: cannot be written ({error.strerror}); give a folder of this user"
            ) from None

    @contextmanager
    def writer_lock(self) -> Iterator[None]:
        """Wait until no other process rebuilds here.

        An hour that `run` has read may grow before it is written; a `stream` that wrote the grown hour in between
        would be undone. Files are therefore listed, read and written under this lock; the kernel frees it when
        its holder is killed.

        Raises:
            StoppedError: `go_on` said no before it was free.
        """
        with (self.root / _LOCK).open("rb") as lock:
            while not _locked(lock):
                if not self._go_on():
                    raise StoppedError
                time.sleep(_LOCK_RETRY_SECONDS)
            yield

    def transaction(self, cluster: str) -> Transaction:
        """A change of what is there now; only as the only writer, from here to its commit.

        Raises:
            DataError: the catalog cannot be read.
        """
        return Transaction(self.root, self.manifest(cluster), self._clock)

    def manifest(self, cluster: str) -> Manifest:
        """What counts now; read again only where it was replaced.

        Raises:
            DataError: it cannot be read.
        """
        return self._manifests.read(self.root, cluster)

    def clusters(self) -> tuple[str, ...]:
        """Those that have a catalog, in order."""
        return clusters(self.root)

    def row_counts(self) -> dict[str, int]:
        """Rows that count now, by table, over all clusters.

        Raises:
            DataError: a catalog cannot be read.
        """
        counts = Counter(dict.fromkeys(ROLLUPS, 0))
        for cluster in self.clusters():
            for name, files in self.manifest(cluster).tables.items():
                counts[name] += sum(it.rows for it in files)
        return {name: counts[name] for name in ROLLUPS}

    def vacuum(self) -> None:
        """Remove what a killed writer left, and what was replaced more than `GRACE` ago; call as the only writer.

        Raises:
            DataError: a catalog cannot be read; then nothing is removed.
        """
        manifests = {cluster: self.manifest(cluster) for cluster in self.clusters()}
        named = {str(self.root / it.path) for it in _files(manifests)}
        oldest = self._clock.now().wall - GRACE_SECONDS
        for table in ROLLUPS:
            for folder in self.root.glob(f"{table}/cluster=*/date=*"):
                if _vacuum_folder(folder, named, oldest):
                    log.debug("%s: removed what was replaced", folder)
        for path in (self.root / FOLDER).glob(".*.tmp"):
            remove(path)

    def write_status(self, status: dict[str, Any]) -> None:
        """Replace the status file, which the page and the demo read.

        Raises:
            DataError: it cannot be written.
        """
        atomic_write(self.root / STATUS, partial(_write, orjson.dumps(status, option=orjson.OPT_INDENT_2) + b"\n"))


def _locked(lock: IO[bytes]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _files(manifests: dict[str, Manifest]) -> Iterator[Any]:
    for manifest in manifests.values():
        for files in manifest.tables.values():
            yield from files


def _vacuum_folder(folder: Path, named: set[str], oldest: float) -> int:
    """Remove the files of a folder that nobody names; how many went."""
    removed = left = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            unfinished = TEMPORARY_FILE.fullmatch(entry.name)
            old = ROLLUP_FILE.fullmatch(entry.name) and entry.path not in named and entry.stat().st_mtime < oldest
            if (unfinished or old) and remove(Path(entry.path)):
                removed += 1
            else:
                left += 1
    if removed and not left:
        try:
            folder.rmdir()
        except OSError:
            log.debug("%s: stays, though it is empty", folder)
    return removed


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

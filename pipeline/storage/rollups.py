"""The rollup folder: immutable data files, a manifest per cluster that lists those that count, and a writer lock."""

import fcntl
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
from ackscope.log import get_logger
from ackscope.manifest import FOLDER, GRACE_SECONDS, Manifest, ManifestCache, clusters
from ackscope.tables import ROLLUPS
from pipeline.stop import StoppedError
from pipeline.storage.durable import atomic_write, remove
from pipeline.storage.layout import ROLLUP_FILE, TEMPORARY_FILE
from pipeline.storage.transaction import Transaction

log = get_logger(__name__)

STATUS = "_status.json"
_LOCK = "_lock"
# Pause between attempts to get the lock; a blocking wait would not notice a stop request.
_LOCK_RETRY_SECONDS = 0.02


class Rollups:
    """The rollup folder, created if it does not exist.

    Args:
        root: the folder.
        clock: decides which files are old.
        go_on: called while waiting for another writer; False gives up.

    Attributes:
        root: the folder.

    Raises:
        DataError: it cannot be created or written.
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
                f"--rollups {root}: cannot be written ({error.strerror}); pass a folder that this user can write"
            ) from None

    @contextmanager
    def writer_lock(self) -> Iterator[None]:
        """Wait for the writer lock and hold it.

        An hour that `run` has read may grow before it is written; a `stream` that wrote the grown hour in between would
        be overwritten. Files are therefore listed, read and written under this lock. The kernel releases it when its
        holder is killed.

        Raises:
            StoppedError: `go_on` returned False while waiting.
        """
        with (self.root / _LOCK).open("rb") as lock:
            while not _locked(lock):
                if not self._go_on():
                    raise StoppedError
                time.sleep(_LOCK_RETRY_SECONDS)
            yield

    def transaction(self, cluster: str) -> Transaction:
        """A transaction on the current rollups; hold the writer lock until its commit.

        Raises:
            DataError: the manifest cannot be read.
        """
        return Transaction(self.root, self.manifest(cluster), self._clock)

    def manifest(self, cluster: str) -> Manifest:
        """The current manifest; parsed again only when it was replaced.

        Raises:
            DataError: it cannot be read.
        """
        return self._manifests.read(self.root, cluster)

    def clusters(self) -> tuple[str, ...]:
        """The clusters that have a manifest, sorted."""
        return clusters(self.root)

    def row_counts(self) -> dict[str, int]:
        """Current rows by table, over all clusters.

        Raises:
            DataError: a manifest cannot be read.
        """
        counts = Counter(dict.fromkeys(ROLLUPS, 0))
        for cluster in self.clusters():
            for name, files in self.manifest(cluster).tables.items():
                counts[name] += sum(it.rows for it in files)
        return {name: counts[name] for name in ROLLUPS}

    def vacuum(self) -> None:
        """Remove what a killed writer left, and files replaced more than `GRACE_SECONDS` ago. Requires the writer lock.

        Raises:
            DataError: a manifest cannot be read; then nothing is removed.
        """
        manifests = {cluster: self.manifest(cluster) for cluster in self.clusters()}
        named = {str(self.root / it.path) for it in _files(manifests)}
        oldest = self._clock.now().wall - GRACE_SECONDS
        for table in ROLLUPS:
            for folder in self.root.glob(f"{table}/cluster=*/date=*"):
                if _vacuum_folder(folder, named, oldest):
                    log.debug("replaced files removed", folder=str(folder))
        for path in (self.root / FOLDER).glob(".*.tmp"):
            remove(path)

    def write_status(self, status: dict[str, Any]) -> None:
        """Replace the status file, which the dashboard and the demo read.

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
    """Remove the unreferenced files of a folder; return how many."""
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
            log.debug("empty folder cannot be removed", folder=str(folder))
    return removed


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

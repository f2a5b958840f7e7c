"""The rollup folder: immutable data files, and for each cluster a manifest that lists those that count, and a lock."""

import fcntl
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import orjson

from ackscope.clock import Clock, SystemClock
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.manifest import GRACE_SECONDS, Manifest, ManifestCache, clusters, manifest_path
from ackscope.object_path import ObjectPath, Place
from ackscope.tables import ROLLUPS
from pipeline.shard import ALL, Shard
from pipeline.stop import StoppedError
from pipeline.storage import delta_log
from pipeline.storage.durable import atomic_write, remove, write_error
from pipeline.storage.layout import ROLLUP_FILE, TEMPORARY_FILE
from pipeline.storage.lease import lease
from pipeline.storage.store import store_of
from pipeline.storage.transaction import Transaction

log = get_logger(__name__)

STATUS = "_status{}.json"
_LOCK, LOCKS = "_lock", "_locks"
# Pause between attempts to get the lock; a blocking wait would not notice a stop request.
_LOCK_RETRY_SECONDS = 0.02
# On object storage, a file that no manifest ever named is removed when it is so old.
_ORPHAN_SECONDS = 3600.0


class Rollups:
    """The rollup folder, created if it does not exist.

    Args:
        root: the folder.
        clock: decides which files are old.
        go_on: called while waiting for another writer; False gives up.
        delta: publish each commit as Delta tables, too, if the package for it is installed.

    Attributes:
        root: the folder.

    Raises:
        DataError: it cannot be created or written.
    """

    def __init__(
        self,
        root: Place,
        clock: Clock | None = None,
        go_on: Callable[[], bool] = lambda: True,
        *,
        delta: bool = True,
    ) -> None:
        self.root = root
        self._delta = delta and delta_log.is_available()
        self._clock, self._go_on = clock or SystemClock(), go_on
        self._manifests = ManifestCache()
        if isinstance(root, ObjectPath):
            # What is wrong with the bucket or the credentials shows now.
            root.is_dir()
            return
        try:
            root.mkdir(parents=True, exist_ok=True)
            (root / _LOCK).touch()
        except OSError as error:
            raise DataError(
                f"--rollups {root}: cannot be written ({error.strerror}); pass a folder that this user can write"
            ) from None

    @contextmanager
    def writer_lock(self, cluster: str | None = None) -> Iterator[None]:
        """Wait for the writer lock of a cluster and hold it; None is the lock of the whole folder.

        An hour that `run` has read may grow before it is written; a `stream` that wrote the grown hour in between would
        be overwritten. Files are therefore listed, read and written under this lock. The kernel releases it when its
        holder is killed.

        On object storage it is a lease, and only that of a cluster.

        Raises:
            DataError: the file of the lock cannot be created.
            StoppedError: `go_on` returned False while waiting.
        """
        if isinstance(self.root, ObjectPath):
            if cluster is None:
                raise ValueError("object storage has no lock of a whole folder")
            with lease(self.root / LOCKS / f"{quote(cluster, safe='')}.json", self._go_on):
                yield
            return
        with ExitStack() as stack:
            # Shared by the writers of all clusters, so that the lock of the folder excludes each of them.
            folder = stack.enter_context((self.root / _LOCK).open("rb"))
            self._wait_for(folder, fcntl.LOCK_EX if cluster is None else fcntl.LOCK_SH)
            if cluster is not None:
                self._wait_for(stack.enter_context(_cluster_lock(self.root, cluster)), fcntl.LOCK_EX)
            yield

    def _wait_for(self, lock: IO[bytes], kind: int) -> None:
        while not _locked(lock, kind):
            if not self._go_on():
                raise StoppedError
            time.sleep(_LOCK_RETRY_SECONDS)

    def transaction(self, cluster: str) -> Transaction:
        """A transaction on the current rollups; hold the writer lock until its commit.

        Raises:
            DataError: the manifest cannot be read.
        """
        return Transaction(self.root, self.manifest(cluster), self._clock, delta=self._delta)

    def manifest(self, cluster: str) -> Manifest:
        """The current manifest; parsed again only when it was replaced.

        Raises:
            DataError: it cannot be read.
        """
        return self._manifests.read(self.root, cluster)

    def clusters(self) -> tuple[str, ...]:
        """The clusters that have a manifest, sorted."""
        return clusters(self.root)

    def row_counts(self, shard: Shard = ALL) -> dict[str, int]:
        """Current rows by table, over all clusters of a shard.

        Raises:
            DataError: a manifest cannot be read.
        """
        counts = Counter(dict.fromkeys(ROLLUPS, 0))
        for cluster in self.clusters():
            for name, files in self.manifest(cluster).tables.items() if cluster in shard else ():
                counts[name] += sum(it.rows for it in files)
        return {name: counts[name] for name in ROLLUPS}

    def vacuum(self, shard: Shard = ALL) -> None:
        """Remove what a killed writer left, and files replaced more than `GRACE_SECONDS` ago, cluster by cluster.

        It takes the lock of each cluster for as long as that takes.

        Raises:
            DataError: a manifest cannot be read; then nothing of its cluster is removed.
            StoppedError: `go_on` returned False while waiting.
        """
        for cluster in self._written_clusters():
            if cluster in shard:
                with self.writer_lock(cluster):
                    self._vacuum_cluster(cluster)

    def _written_clusters(self) -> list[str]:
        """Every cluster that has files or a manifest: a killed writer may leave files without one."""
        folders = (folder.name for table in ROLLUPS for folder in self.root.glob(f"{table}/cluster=*"))
        return sorted({unquote(name.removeprefix("cluster=")) for name in folders} | set(self.clusters()))

    def _vacuum_cluster(self, cluster: str) -> None:
        if isinstance(self.root, ObjectPath):
            _vacuum_objects(self.root, self.manifest(cluster), self._clock.now().wall)
            return
        named = {str(self.root / it.path) for files in self.manifest(cluster).tables.values() for it in files}
        oldest = self._clock.now().wall - GRACE_SECONDS
        for table in ROLLUPS:
            for folder in (self.root / table / f"cluster={quote(cluster, safe='')}").glob("date=*"):
                if _vacuum_folder(folder, named, oldest):
                    log.debug("replaced files removed", folder=str(folder))
        path = manifest_path(self.root, cluster)
        remove(path.with_name(f".{path.name}.tmp"))

    def write_status(self, status: dict[str, Any], shard: Shard = ALL) -> None:
        """Replace the status file, which the dashboard and the demo read; a shard of a fleet has one of its own.

        Raises:
            DataError: it cannot be written.
        """
        path = self.root / STATUS.format(shard.suffix)
        atomic_write(path, partial(_write, orjson.dumps(status, option=orjson.OPT_INDENT_2) + b"\n"))


def _cluster_lock(root: Path, cluster: str) -> IO[bytes]:
    path = root / LOCKS / quote(cluster, safe="")
    try:
        path.parent.mkdir(exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise write_error(path, error) from None


def _locked(lock: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _vacuum_objects(root: ObjectPath, manifest: Manifest, now: float) -> None:
    """Remove the data files of a cluster that nobody needs; it holds the lease.

    The manifest is committed first, so a writer that lost its lease cannot commit a file that is removed here.
    """
    named = {it.path for files in manifest.tables.values() for it in files}
    removed: dict[str, ObjectPath] = {}
    for table in ROLLUPS:
        for found in (root / table / f"cluster={quote(manifest.cluster, safe='')}").below():
            path = str(found.relative_to(root))
            if path in named or not ROLLUP_FILE.fullmatch(found.name) or found.known is None:
                continue
            replaced = manifest.replaced.get(path)
            if now - GRACE_SECONDS > replaced if replaced else now - _ORPHAN_SECONDS > found.known.st_mtime:
                removed[path] = found
    left = {path: at for path, at in manifest.replaced.items() if path not in removed}
    if removed:
        store_of(root).commit(manifest, replace(manifest, number=manifest.number + 1, replaced=left), (), now)
        for found in removed.values():
            found.unlink()
        log.debug("replaced files removed", cluster=manifest.cluster, count=len(removed))


def _vacuum_folder(folder: Path, named: set[str], oldest: float) -> int:
    """Remove the files of a folder that nobody needs; return how many."""
    removed = left = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            unfinished = TEMPORARY_FILE.fullmatch(entry.name)
            unnamed = ROLLUP_FILE.fullmatch(entry.name) and entry.path not in named
            # A file with a token may be in the hands of an executor, which holds no lock.
            is_removable = unfinished and not unfinished["token"]
            if not is_removable and (unfinished or unnamed):
                is_removable = _written_before(entry, oldest)
            if is_removable and remove(Path(entry.path)):
                removed += 1
            else:
                left += 1
    if removed and not left:
        try:
            folder.rmdir()
        except OSError:
            log.debug("empty folder cannot be removed", folder=str(folder))
    return removed


def _written_before(entry: os.DirEntry[str], oldest: float) -> bool:
    try:
        return entry.stat().st_mtime < oldest
    except FileNotFoundError:
        # It got its final name meanwhile.
        return False


def _write(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

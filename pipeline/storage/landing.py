"""The landing folder: its files and their statistics; bad files are quarantined."""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from pathlib import PurePath

from ackscope.clock import Clock, SystemClock
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, ObjectStorageError, Place, relative
from ackscope.tables import FINDING_EVENTS, LANDING, Table
from pipeline.hours import HOUR, date_of
from pipeline.storage.expired import NAME, first_whole_hours
from pipeline.storage.file_stats import FileStats, ForeignFileError, read_stats, valid_window, verify_pages
from pipeline.storage.folder_listing import COMPACTED, Stamp, arrived_at, list_folder, stamp_of
from pipeline.storage.object_listing import ObjectListing
from pipeline.storage.quarantine import copy_misdated_rows, quarantine_file

log = get_logger(__name__)

# Hours since 1970 by (table, cluster).
TouchedHours = dict[tuple[Table, str], set[int]]

_CLUSTER = re.compile(r"cluster=([A-Za-z0-9_.-]+)")
_DATE = re.compile(r"date=(\d{4}-\d\d-\d\d)")
_RESERVED = {".", ".."}
_SCAN_ATTEMPTS = 10
# At the same time, to object storage.
_REQUESTS = 16
# Some 50 MB: three days of three tables with a file every ten seconds.
_MAX_CACHED_FILES = 100_000


@dataclass(frozen=True, slots=True)
class Partition:
    """One folder of landing files."""

    table: Table
    cluster: str
    day: date

    @property
    def folder(self) -> PurePath:
        """Its path, relative to the landing folder."""
        return PurePath(self.table.name) / f"cluster={self.cluster}" / f"date={self.day.isoformat()}"


@dataclass(frozen=True, slots=True)
class _CachedStats:
    stamp: Stamp
    stats: FileStats | None

    @property
    def final(self) -> bool:
        """Whether the statistics stay valid; rows that are ahead of now will count later."""
        return self.stats is None or not self.stats.early


class Landing:
    """The landing folder. Statistics of a file are cached until the file changes.

    Threads may share it, each with clusters of its own.

    Args:
        root: the folder.
        clock: decides which rows are dated in the future.
        listing: what a bucket holds, if somebody keeps it up to date; None lists it each time.

    Attributes:
        root: the folder.
        quarantined: number of files quarantined so far.
    """

    def __init__(self, root: Place, clock: Clock | None = None, listing: ObjectListing | None = None) -> None:
        self.root = root
        self._listing = listing
        self.quarantined = 0
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._cache: dict[Partition, dict[Place, _CachedStats]] = {}
        self._expired: tuple[tuple[int, int], dict[str, int]] = ((0, 0), {})

    def partitions(self) -> Iterator[Partition]:
        """Every folder that can hold landing files, sorted."""
        for table in LANDING.values():
            for cluster_folder in _folders(self.root / table.name):
                for date_folder in _folders(cluster_folder):
                    partition = self.partition_of(date_folder)
                    if partition is not None:
                        yield partition

    def partition_of(self, folder: Place) -> Partition | None:
        """The partition of a folder; None if its path does not fit the layout."""
        try:
            name, cluster, day = relative(folder, self.root).parts
        except ValueError:
            return None
        found, dated = _CLUSTER.fullmatch(cluster), _DATE.fullmatch(day)
        if name not in LANDING or found is None or dated is None or found[1] in _RESERVED:
            return None
        try:
            return Partition(LANDING[name], found[1], date.fromisoformat(dated[1]))
        except ValueError:
            return None

    def files(self, partition: Partition) -> dict[Place, FileStats]:
        """The intact files of a partition; bad ones are quarantined.

        The result never has both a compacted file and one of its sources.

        Raises:
            DataError: the folder cannot be read.
        """
        with self._lock:
            previous = self._cache.pop(partition, {})
        for strict in (*[True] * _SCAN_ATTEMPTS, False):
            try:
                now = self._scan(partition, previous, strict=strict)
                break
            except FileNotFoundError:
                # It was removed between listing and reading: maybe merged into a file that is not in this listing.
                self._reload(self.root / partition.folder)
        self._remember(partition, {path: cached for path, cached in now.items() if cached.final})
        floor = 0 if partition.table == FINDING_EVENTS else self.floor(partition.cluster)
        return {path: cached.stats.from_floor(floor) for path, cached in now.items() if cached.stats is not None}

    @staticmethod
    def is_compacted(path: Place) -> bool:
        """Whether a file is the result of a compaction; its rows may all be rolled up already."""
        return COMPACTED.fullmatch(path.name) is not None

    def covering(self, table: Table, cluster: str, start: int, end: int) -> dict[Place, FileStats]:
        """The files that may have rows from `start` to before `end`, seconds since 1970.

        A row may be up to a day off the date of its folder, so the folders of the neighbouring days are read, too.
        """
        days = {date_of(second // HOUR + shift) for second in (start, end - 1) for shift in (-24, 0, 24)}
        return {
            path: stats
            for day in sorted(days)
            for path, stats in self.files(Partition(table, cluster, day)).items()
            if stats.first < end * 1_000_000 and start * 1_000_000 <= stats.last
        }

    def floor(self, cluster: str) -> int:
        """The first hour since 1970 whose raw rows are complete; older hours are never rebuilt. 0: nothing has expired.

        Raises:
            DataError: the file that records it is damaged, or the storage cannot be used.
        """
        try:
            status = (self.root / NAME).stat()
        except ObjectStorageError:
            raise
        except OSError:
            return 0
        stamp = (status.st_mtime_ns, status.st_ino)
        if self._expired[0] != stamp:
            self._expired = (stamp, first_whole_hours(self.root))
        return self._expired[1].get(cluster, 0)

    def quarantine_damaged(self, table: Table, paths: Iterable[Place]) -> int:
        """Read every value of files that Spark could not read; quarantine damaged ones and return their number."""
        damaged = 0
        for path in paths:
            try:
                verify_pages(path, table)
            except ForeignFileError as error:
                partition = self.partition_of(path.parent)
                is_moved = quarantine_file(self.root, path, str(error))
                with self._lock:
                    self.quarantined += 1
                    if not is_moved and partition is not None:
                        # It stays where it is, and is ignored as long as it does not change.
                        self._cache.setdefault(partition, {})[path] = _CachedStats(stamp_of(path), None)
                damaged += 1
            except FileNotFoundError:
                self._reload(path.parent)
                damaged += 1
        return damaged

    def _reload(self, folder: Place) -> None:
        if self._listing is not None:
            self._listing.reload(folder)

    def _remember(self, partition: Partition, files: dict[Place, _CachedStats]) -> None:
        """Cache the files of a partition; beyond the limit drop the least recently used partitions."""
        with self._lock:
            self._cache[partition] = files
            total = sum(len(known) for known in self._cache.values())
            while total > _MAX_CACHED_FILES and len(self._cache) > 1:
                total -= len(self._cache.pop(next(iter(self._cache))))

    def _scan(
        self, partition: Partition, previous: dict[Place, _CachedStats], *, strict: bool
    ) -> dict[Place, _CachedStats]:
        now: dict[Place, _CachedStats] = {}
        folder = self.root / partition.folder
        listed = (list_folder(folder) if self._listing is None else self._listing.folder(folder)).files
        new = [path for path, stamp in listed.items() if path not in previous or previous[path].stamp != stamp]
        inspected = self._inspect_objects(new, partition) if isinstance(self.root, ObjectPath) else {}
        for path, stamp in listed.items():
            cached = previous.get(path)
            if cached is None or cached.stamp != stamp:
                try:
                    stats = inspected[path].result() if path in inspected else self._inspect(path, partition)
                    cached = _CachedStats(
                        stamp, None if stats is None else replace(stats, arrived_at=arrived_at(path, stamp))
                    )
                except FileNotFoundError:
                    if strict:
                        raise
                    continue
                previous[path] = cached
            now[path] = cached
        return now

    def _inspect_objects(self, paths: Sequence[Place], partition: Partition) -> dict[Place, Future[FileStats | None]]:
        """The results of `_inspect`: each is a request, so many are made at the same time."""
        with ThreadPoolExecutor(_REQUESTS, "landing") as pool:
            return {path: pool.submit(self._inspect, path, partition) for path in paths}

    def _inspect(self, path: Place, partition: Partition) -> FileStats | None:
        now = self._clock.now().wall
        try:
            stats = read_stats(path, partition.table, partition.day, now, is_ours=self.is_compacted(path))
        except ForeignFileError as error:
            with self._lock:
                self.quarantined += 1
            quarantine_file(self.root, path, str(error))
            return None
        except PermissionError:
            log.warning(
                "file not readable, ignored; grant read permission, then `ackscope pipeline run`", file=str(path)
            )
            return None
        if stats.misdated:
            copy_misdated_rows(self.root, path, partition.table.time, *valid_window(partition.day, now))
        return stats


def require_folder(root: Place) -> None:
    """Reject a landing path that cannot be a folder of files.

    Raises:
        DataError: it is a file, or is not readable.
    """
    if isinstance(root, ObjectPath):
        # What is wrong with the bucket or the credentials shows now.
        root.is_dir()
        return
    if root.exists() and not root.is_dir():
        raise DataError(f"--landing {root}: is a file; pass the folder that the exporter writes to")
    if root.is_dir() and not os.access(root, os.R_OK | os.X_OK):
        raise DataError(f"--landing {root}: is not readable; grant this user read permission")


def _folders(parent: Place) -> list[Place]:
    if isinstance(parent, ObjectPath):
        return [path for path in parent.iterdir() if path.known is None]
    try:
        return sorted(path for path in parent.iterdir() if path.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []

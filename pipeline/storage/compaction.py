"""Compaction of landing files: which small files to merge, and the steps that swap them for the merged ones.

(a) The new files are written to a hidden folder. (b) A note is written that names them and their sources. (c) They are
renamed into place; with the last rename the sources no longer count. (d) The sources are removed, (e) then the note.
After a crash `finish` completes it: forwards if all new files exist, else backwards.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.errors import DataError
from ackscope.object_path import ObjectPath, Place
from pipeline.storage.durable import remove, sync_folder, write_error
from pipeline.storage.file_stats import FileStats
from pipeline.storage.folder_listing import (
    COMPACTED,
    OBJECT_NOTE,
    CompactionNote,
    Stamp,
    arrived_at,
    list_folder,
    stamp_of,
    write_note,
)
from pipeline.storage.landing import Landing, Partition
from pipeline.storage.lease import lease

# Files from this size on are not compacted.
LARGE_FILE_BYTES = 64 * 2**20

_TARGET_BYTES = 128 * 2**20
# Up to this many bytes become one file; more are spread over files of about `_TARGET_BYTES`.
_SINGLE_FILE_BYTES = 192 * 2**20

_SAMPLE_FILES, _SAMPLE_BYTES = 64, 32 * 2**20
_HIDDEN, _PARTIAL_NOTE = ".compacted-", "._replaces-"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The files of a partition that will be merged.

    Attributes:
        sources: those files, with the values that change when a file changes.
        rows: number of their rows that count.
        bytes: their size.
    """

    partition: Partition
    sources: dict[Place, Stamp]
    rows: int
    bytes: int

    @property
    def digest(self) -> str:
        """A digest of the names of the source files, which identifies the compaction."""
        names = "\n".join(sorted(path.name for path in self.sources))
        return hashlib.sha256(names.encode()).hexdigest()[:8]

    @property
    def newest(self) -> int:
        """When the newest source was written, nanoseconds since 1970."""
        if isinstance(next(iter(self.sources)), ObjectPath):
            return round(max(arrived_at(path, stamp) for path, stamp in self.sources.items()) * 1e9)
        return max(modified for _, modified, _ in self.sources.values())

    def hidden(self, root: Path) -> Path:
        """The folder of the new files until they are renamed into place."""
        return root / self.partition.folder / f"{_HIDDEN}{self.digest}.tmp"


@dataclass(frozen=True, slots=True)
class PartitionScan:
    """The files of a partition and the plan to compact them.

    Attributes:
        plan: None if there is nothing to do.
        files, bytes: all files that count.
        behind: files that may not be rolled up yet, and must wait.
    """

    plan: CompactionPlan | None
    files: int
    bytes: int
    behind: int


@contextmanager
def compaction_lock(root: Place, go_on: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Hold the compaction lock of a landing folder; in a bucket it is a lease, which only saves work.

    Raises:
        DataError: another compaction holds it, or the folder cannot be written.
    """
    if isinstance(root, ObjectPath):
        with lease(root / "_compact.lock.json", go_on, wait=False) as is_held:
            if not is_held:
                raise _busy(root)
            yield
        return
    try:
        lock = (root / "_compact.lock").open("wb")
    except OSError as error:
        raise write_error(root / "_compact.lock", error) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(root) from None
        yield


def _busy(root: Place) -> DataError:
    return DataError(f"--landing {root}: another `compact` is running there; wait until it ends")


def scan_partition(landing: Landing, partition: Partition, watermark: float) -> PartitionScan:
    """Plan the compaction of a closed partition.

    Only files that were rolled up before `watermark`, seconds since 1970, are merged, so that a stream need not read
    the result. Files with undeclared columns stay, because those columns would be lost.

    Raises:
        DataError: the folder cannot be read.
    """
    stats = landing.files(partition)
    stamps = {
        path: stamp for path, stamp in list_folder(landing.root / partition.folder).files.items() if path in stats
    }
    ready = {path for path, stamp in stamps.items() if is_ingested(path, stamp, watermark)}
    sources = {path: it for path, it in stamps.items() if path in ready and _is_mergeable(path, stats[path], it)}
    plan = None
    if len(sources) > 1:
        rows = sum(stats[path].rows for path in sources)
        plan = CompactionPlan(partition, sources, rows, sum(size for size, _, _ in sources.values()))
    return PartitionScan(plan, len(stamps), sum(size for size, _, _ in stamps.values()), len(stamps) - len(ready))


def output_count(plan: CompactionPlan) -> int:
    """The number of new files.

    A sample of neighbouring files is merged to measure how much small files shrink.
    """
    if plan.bytes <= _SINGLE_FILE_BYTES:
        return 1
    paths = list(plan.sources)
    sample: list[Place] = []
    for path in paths[len(paths) // 2 :][:_SAMPLE_FILES]:
        sample.append(path)
        if sum(plan.sources[it][0] for it in sample) > _SAMPLE_BYTES:
            break
    before = sum(plan.sources[path][0] for path in sample)
    try:
        rows = pa.concat_tables([pq.read_table(path, columns=list(plan.partition.table.names)) for path in sample])
    except (pa.ArrowException, OSError):
        # A file is damaged, or older than its table; Spark handles both later.
        share = 1.0
    else:
        sink = pa.BufferOutputStream()
        pq.write_table(rows.sort_by(plan.partition.table.time), sink, compression="zstd")
        share = min(1.0, sink.getvalue().size / before)
    return 1 if plan.bytes * share <= _SINGLE_FILE_BYTES else round(plan.bytes * share / _TARGET_BYTES)


def swap_in(root: Path, plan: CompactionPlan, written: Sequence[Path]) -> int | None:
    """Steps (b) to (e), under the writer lock of the rollups; return the bytes of the new files.

    Returns None, and does nothing, if a source has changed or was removed meanwhile.

    Raises:
        DataError: the new files do not hold as many rows as the sources, or cannot be written; nothing has changed.
    """
    folder = root / plan.partition.folder
    try:
        rows = sum(pq.read_metadata(path).num_rows for path in written)
        if rows != plan.rows:
            raise DataError(f"{folder}: merging turned {plan.rows} rows into {rows}; its files are unchanged")
        for path in written:
            _make_durable(path, plan.newest)
        if any(stamp_of(path) != stamp for path, stamp in plan.sources.items()):
            return None
        names = [compacted_name(plan, number) for number in range(len(written))]
        note = CompactionNote(plan.digest, frozenset(names), frozenset(path.name for path in plan.sources))
        write_note(folder, note)
        sync_folder(folder)
        for path, name in zip(written, names, strict=True):
            path.rename(folder / name)
        sync_folder(folder)
        _finish_swap(folder, note)
        return sum((folder / name).stat().st_size for name in names)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise write_error(folder, error) from None


def was_interrupted(root: Path, partition: Partition) -> bool:
    """Whether a crash left an unfinished compaction.

    Raises:
        DataError: the folder cannot be read.
    """
    found = list_folder(root / partition.folder)
    return bool(found.notes) or any(name.startswith((_HIDDEN, _PARTIAL_NOTE)) for name in found.names)


def finish(root: Path, partition: Partition) -> None:
    """Complete or roll back a compaction that a crash interrupted, under the writer lock of the rollups.

    Raises:
        DataError: the folder cannot be read or written.
    """
    folder = root / partition.folder
    found = list_folder(folder)
    try:
        for note in found.notes:
            if note.files <= found.names:
                _finish_swap(folder, note)
            else:
                _roll_back(folder, note)
    except OSError as error:
        raise write_error(folder, error) from None
    for name in found.names:
        if name.startswith(_HIDDEN):
            shutil.rmtree(folder / name, ignore_errors=True)
        elif name.startswith(_PARTIAL_NOTE):
            remove(folder / name)


def discard(root: Path, plan: CompactionPlan) -> None:
    """Remove the new files of a plan that do not count."""
    shutil.rmtree(plan.hidden(root), ignore_errors=True)


def _finish_swap(folder: Path, note: CompactionNote) -> None:
    """Steps (d) and (e)."""
    for name in sorted(note.sources - note.files):
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
    (folder / note.name).unlink(missing_ok=True)


def _roll_back(folder: Path, note: CompactionNote) -> None:
    for name in note.files:
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)
    (folder / note.name).unlink(missing_ok=True)


def is_ingested(path: Place, stamp: Stamp, watermark: float) -> bool:
    """Whether a file existed at the watermark; a compacted file counts as old as its newest source."""
    return arrived_at(path, stamp) < watermark


def _is_mergeable(path: Place, stats: FileStats, stamp: Stamp) -> bool:
    # In a bucket, sources must be listed before the note: see `folder_listing`.
    if isinstance(path, ObjectPath) and not (path.name < OBJECT_NOTE or COMPACTED.fullmatch(path.name)):
        return False
    return stamp[0] < LARGE_FILE_BYTES and stats.only_known_columns and not stats.early


def _make_durable(path: Path, newest: int) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.utime(handle, ns=(newest, newest))
        os.fsync(handle)
    finally:
        os.close(handle)


def compacted_name(plan: CompactionPlan, number: int) -> str:
    """The name of a new file."""
    moment = datetime.fromtimestamp(plan.newest / 1e9, UTC).strftime("%Y%m%dT%H%M%S")
    return f"compacted-{moment}-{plan.digest}-{number:06d}.parquet"

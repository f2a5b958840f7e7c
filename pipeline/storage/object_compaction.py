"""Compaction of landing files in a bucket, with Arrow: the small files of a date become few, and never count twice.

(a) The new files are written. They do not count yet. (b) The note of the folder is replaced by a conditional put: it
names the new files and their sources, and the folder switches at this moment. (c) The sources are removed. A kill
before (b) leaves files that never count, after it sources that do not count any more; `tidy` removes both. A writer
that was paused and lost its lease cannot do (b), because the note is another one by then.

The note remembers the sources until `expire` removes the date: an exporter that was killed may upload one again.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.arrow_files import dataset
from ackscope.errors import DataError
from ackscope.object_path import ConflictError, ObjectPath, Place
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR, first_hour
from pipeline.storage.compaction import CompactionPlan, compacted_name
from pipeline.storage.folder_listing import (
    COMPACTED,
    OBJECT_NOTE,
    ObjectMerge,
    ObjectNote,
    listed_objects,
    read_folder,
    write_object_note,
)
from pipeline.storage.landing import Partition

# The sources of one new file: they are sorted in memory.
_GROUP_ROWS, _GROUP_BYTES = 2_000_000, 128 * 2**20

# A new file that no note names is removed when it is so old.
_ORPHAN_SECONDS = 3600.0


def groups(plan: CompactionPlan) -> list[list[Place]]:
    """The sources of each new file, in the order of their names, which is that of time."""
    found: list[list[Place]] = []
    size, limit = 0, min(_GROUP_BYTES, max(1, round(plan.bytes * _GROUP_ROWS / max(1, plan.rows))))
    for path, (its, _, _) in plan.sources.items():
        if not found or size + its > limit:
            found.append([])
            size = 0
        found[-1].append(path)
        size += its
    return found


def merge(root: ObjectPath, plan: CompactionPlan, check: Callable[[], None]) -> dict[str, int]:
    """Write the new files, which do not count yet; return their sizes.

    Args:
        root: the landing prefix.
        plan: what to merge.
        check: called between files; may raise.

    Raises:
        DataError: the new files would not hold as many rows as the sources.
        pyarrow.ArrowException: a source is damaged.
        FileNotFoundError: a source was removed.
        ObjectStorageError: the storage cannot be used.
    """
    folder, sizes, rows = root / plan.partition.folder, dict[str, int](), 0
    for number, sources in enumerate(groups(plan)):
        check()
        merged = _sorted_rows(plan, sources)
        rows += merged.num_rows
        content = io.BytesIO()
        with pq.ParquetWriter(content, merged.schema, compression="zstd") as writer:
            for hour in _hours(plan, merged):
                writer.write_table(hour)
        name = compacted_name(plan, number)
        with suppress(ConflictError):
            # What is there is of the same sources.
            (folder / name).write_version(content.getbuffer())
        sizes[name] = content.getbuffer().nbytes
    if rows != plan.rows:
        raise DataError(f"{folder}: merging turned {plan.rows} rows into {rows}; its files are unchanged")
    return sizes


def switch(root: ObjectPath, plan: CompactionPlan, names: frozenset[str]) -> bool:
    """Steps (b) and (c), under the writer lock of the rollups; False, and nothing changes, if the folder did meanwhile.

    Raises:
        ObjectStorageError: the storage cannot be used.
    """
    folder = root / plan.partition.folder
    found, note = read_folder(folder)
    files, there = listed_objects(found, note).files, {it.name for it in found}
    if not names <= there or any(files.get(path) != stamp for path, stamp in plan.sources.items()):
        return False
    sources = frozenset(path.name for path in plan.sources)
    try:
        write_object_note(folder, note, [*note.merges, ObjectMerge(names, sources)])
    except ConflictError:
        return False
    for path in plan.sources:
        path.unlink(missing_ok=True)
    return True


def is_untidy(root: ObjectPath, partition: Partition, now: float) -> bool:
    """Whether a kill left anything.

    Raises:
        ObjectStorageError: the storage cannot be used.
    """
    found, note = read_folder(root / partition.folder)
    return any(it.name in note.sources for it in found) or bool(_orphans(found, note, now))


def tidy(root: ObjectPath, partition: Partition, now: float) -> None:
    """Remove what a kill left, under the writer lock of the rollups.

    Raises:
        ObjectStorageError: the storage cannot be used.
    """
    folder = root / partition.folder
    found, note = read_folder(folder)
    removed, orphans = [it for it in found if it.name in note.sources], _orphans(found, note, now)
    if orphans:
        # First another note, so that a writer that was paused cannot name a file that is removed here.
        with suppress(ConflictError):
            write_object_note(folder, note, note.merges)
            removed += orphans
    for it in removed:
        it.unlink()


def forget(root: ObjectPath, partition: Partition) -> None:
    """Remove the note of a folder whose files are all gone.

    Raises:
        ObjectStorageError: the storage cannot be used.
    """
    folder = root / partition.folder
    found, _ = read_folder(folder)
    if {it.name for it in found} == {OBJECT_NOTE}:
        (folder / OBJECT_NOTE).unlink()


def _orphans(found: Iterable[ObjectPath], note: ObjectNote, now: float) -> list[ObjectPath]:
    """New files that a killed writer left before any note named them."""
    unnamed = [it for it in found if COMPACTED.fullmatch(it.name) and it.name not in note.files | note.sources]
    return [it for it in unnamed if it.known is not None and it.known.st_mtime < now - _ORPHAN_SECONDS]


def _sorted_rows(plan: CompactionPlan, sources: list[Place]) -> pa.Table:
    table, day = plan.partition.table, first_hour(plan.partition.day)
    rows = dataset(sources, arrow_schema(table)).to_table()
    times = rows[table.time].cast(pa.int64())
    first, last = (day - 24) * HOUR * 1_000_000, (day + 48) * HOUR * 1_000_000
    valid = rows.filter(pc.and_(pc.greater_equal(times, first), pc.less(times, last)))
    order = [table.time, *(name for name in table.key if name != table.time)]
    return valid.sort_by([(name, "ascending") for name in order])


def _hours(plan: CompactionPlan, rows: pa.Table) -> Iterator[pa.Table]:
    """Slices of one hour each: a reader of some hours skips the other row groups."""
    hours = pc.divide(rows[plan.partition.table.time].cast(pa.int64()), HOUR * 1_000_000)
    at = 0
    for count in pc.value_counts(hours).field("counts").to_pylist():
        yield rows.slice(at, count)
        at += count

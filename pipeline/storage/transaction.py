"""A transaction on the rollups of one cluster: new files are written next to the old ones, and count after a commit."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.clock import Clock
from ackscope.manifest import DataFile, Manifest, encode, manifest_path
from ackscope.tables import BASELINES, MINUTES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR, date_of
from pipeline.storage.digest import digest, digest_of
from pipeline.storage.durable import atomic_write, sync_folder, write_error
from pipeline.storage.layout import FileSlot, coarser_table, day_slot, hours_per_digest, row_hours, slot_for
from pipeline.storage.row_order import read_hours, sort_by_time, write_rows


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The rows of one hour or day, loaded on demand."""

    digest: str
    rows: Callable[[], pa.Table]


class Transaction:
    """Staged files of one cluster, invisible until `commit`. Requires the writer lock.

    Hours are since 1970; for the table `baselines`, hours of the week.

    Attributes:
        manifest: the manifest that it started from; after a commit, the committed one.
    """

    def __init__(self, root: Path, manifest: Manifest, clock: Clock) -> None:
        self.manifest = manifest
        self._root, self._clock = root, clock
        self._tables = {name: list(files) for name, files in manifest.tables.items()}
        self._folders: set[Path] = set()

    @property
    def pending(self) -> Manifest:
        """The manifest that a commit would write now."""
        return replace(self.manifest, tables={name: tuple(files) for name, files in self._tables.items()})

    def rows(self, table: Table, start: int, end: int) -> pa.Table:
        """The rows of the hours from `start` to before `end` as staged now, sorted by the key.

        Raises:
            DataError: a file cannot be read.
        """
        found = [
            self._read(table, it, max(start, it.start), min(end, it.end))
            for it in self.pending.files_for(table.name, start, end)
        ]
        return pa.concat_tables([arrow_schema(table).empty_table(), *found])

    def replace_hours(
        self, table: Table, hours: Iterable[int], rows: pa.Table, source_digests: Mapping[int, str] | None = None
    ) -> None:
        """Replace these hours of a table with the rows of `rows` that lie in them; its other hours stay.

        `source_digests` is for tables of hours and days: the digest of the source rows of each.

        Raises:
            DataError: a file cannot be written, or one that is replaced only in part cannot be read.
        """
        numbers = row_hours(table, rows)
        width = hours_per_digest(table)
        requested: dict[int, set[int]] = defaultdict(set)
        for hour in hours:
            requested[hour - hour % width].add(hour)
        chunks: dict[int, _Chunk | None] = {}
        for start, unit_hours in requested.items():
            part = sort_by_time(table, rows.filter(pc.is_in(numbers, pa.array(sorted(unit_hours), pa.int64()))))
            if len(unit_hours) < width:
                old = self.rows(table, start, start + width)
                others = pc.invert(pc.is_in(row_hours(table, old), pa.array(sorted(unit_hours), pa.int64())))
                part = sort_by_time(table, pa.concat_tables([old.filter(others), part]))
            chunks[start] = _Chunk(digest(part), partial(_identity, part)) if part.num_rows else None
        digests = {hour: (source_digests or {}).get(hour) for unit_hours in requested.values() for hour in unit_hours}
        self._place(table, chunks, digests, _baseline_day(table, rows))

    def upsert_range(self, table: Table, start: int, end: int, rows: pa.Table) -> None:
        """Replace the minutes from `start` to before `end`, seconds since 1970, of a table of minutes with these rows.

        Raises:
            DataError: same as `replace_hours`.
        """
        low, high = (pa.scalar(second * 1_000_000, pa.int64()) for second in (start, end))
        ordered = sort_by_time(table, rows)
        hours = range(start // HOUR, -(-end // HOUR))
        edges = np.searchsorted(row_hours(table, ordered).to_numpy(), [*hours, hours.stop])
        chunks: dict[int, _Chunk | None] = {}
        for hour, (first, last) in zip(hours, pairwise(edges.tolist()), strict=True):
            rows_of_hour = ordered.slice(first, last - first)
            if not (start <= hour * HOUR and (hour + 1) * HOUR <= end):
                old = self.rows(table, hour, hour + 1)
                times = old[table.time].cast(pa.int64())
                # Time is the first key column, so the rows before and after need no sorting.
                before, after = old.filter(pc.less(times, low)), old.filter(pc.greater_equal(times, high))
                rows_of_hour = pa.concat_tables([before, rows_of_hour, after]).combine_chunks()
            chunks[hour] = (
                _Chunk(digest(rows_of_hour), partial(_identity, rows_of_hour)) if rows_of_hour.num_rows else None
            )
        self._place(table, chunks, {}, None)

    def replace_table(self, table: Table, rows: pa.Table) -> None:
        """Replace a whole table with these rows.

        Raises:
            DataError: same as `replace_hours`.
        """
        width = hours_per_digest(table)
        known = {
            int(start) + hour for it in self._tables.get(table.name, ()) for start in it.parts for hour in range(width)
        }
        given = {hour - hour % width for hour in pc.unique(row_hours(table, rows)).to_pylist()}
        self.replace_hours(table, known | {start + hour for start in given for hour in range(width)}, rows)

    def drop_hours(self, table: Table, hours: Iterable[int]) -> None:
        """Drop expired hours; the hours and days that were downsampled from them stay.

        Raises:
            DataError: same as `replace_hours`.
        """
        dropped = set(hours)
        self.replace_hours(table, dropped, arrow_schema(table).empty_table())
        made = coarser_table(table)
        if made is None:
            return
        parts = {start: part for it in self._tables.get(table.name, ()) for start, part in it.parts.items()}
        starts = {str(hour - hour % hours_per_digest(table)) for hour in dropped}
        for index, it in enumerate(self._tables.get(made.name, ())):
            if starts & it.made_of.keys():
                # The remaining hours of a day are no reason to downsample it again.
                digests = {start: parts.get(start) if start in starts else part for start, part in it.made_of.items()}
                left = {start: part for start, part in digests.items() if part is not None}
                self._tables[made.name][index] = replace(it, made_of=left)

    def compact_day(self, table: Table, day: date) -> bool:
        """Merge the hour files of a date into one; return whether there was anything to do.

        Raises:
            DataError: a file cannot be read or written.
        """
        slot = day_slot(day)
        files = self.pending.files_for(table.name, slot.start, slot.end)
        if not files or [(it.start, it.end) for it in files] == [(slot.start, slot.end)]:
            return False
        chunks = {start: chunk for it in files for start, chunk in self._chunks_of(table, it)}
        self._write_slot(table, slot, chunks, {})
        return True

    def commit(self) -> Manifest:
        """Make all staged changes visible together, durably; does nothing without changes.

        Raises:
            DataError: the manifest cannot be written; then nothing has changed.
        """
        pending = self.pending
        if _non_empty(pending) == _non_empty(self.manifest):
            return self.manifest
        committed = replace(pending, number=self.manifest.number + 1, made_at=self._clock.now().iso())
        for folder in self._folders:
            sync_folder(folder)
        named = {it.path for files in pending.tables.values() for it in files}
        for files in self.manifest.tables.values():
            for it in files:
                if it.path not in named:
                    # The grace period of a replaced file starts now, not when it was written.
                    with suppress(OSError):
                        os.utime(self._root / it.path)
        path = manifest_path(self._root, committed.cluster)
        atomic_write(path, partial(_write_bytes, encode(committed)))
        sync_folder(path.parent)
        self.manifest = committed
        self._folders.clear()
        return committed

    def _place(
        self,
        table: Table,
        chunks: Mapping[int, _Chunk | None],
        source_digests: Mapping[int, str | None],
        day: date | None,
    ) -> None:
        """Put chunks (None removes one) into the slots of their hours."""
        by_slot: dict[FileSlot, dict[int, _Chunk | None]] = defaultdict(dict)
        for start, chunk in chunks.items():
            by_slot[self._slot_for(table, start, day)][start] = chunk
        for slot, unit_hours in by_slot.items():
            files = self.pending.files_for(table.name, slot.start, slot.end)
            before = {start: chunk for it in files for start, chunk in self._chunks_of(table, it)}
            after = {start: chunk for start, chunk in (before | unit_hours).items() if chunk is not None}
            bound = {int(hour): text for it in files for hour, text in it.made_of.items()}
            bound |= {hour: text or "" for hour, text in source_digests.items() if slot.start <= hour < slot.end}
            self._write_slot(table, slot, after, {hour: text for hour, text in bound.items() if text})

    def _slot_for(self, table: Table, hour: int, day: date | None) -> FileSlot:
        slot = slot_for(table, hour, day)
        for it in self.pending.files_for(table.name, hour, hour + 1):
            if it.end - it.start > slot.end - slot.start:
                return day_slot(date_of(hour))
        return slot

    def _chunks_of(self, table: Table, it: DataFile) -> Iterator[tuple[int, _Chunk]]:
        for start, text in it.parts.items():
            hour = int(start)
            yield hour, _Chunk(text, partial(self._read, table, it, hour, hour + hours_per_digest(table)))

    def _read(self, table: Table, it: DataFile, start: int, end: int) -> pa.Table:
        return read_hours(self._root / it.path, table, start, end, multi_hour=_is_multi_hour(table, it))

    def _write_slot(
        self, table: Table, slot: FileSlot, chunks: Mapping[int, _Chunk], source_digests: Mapping[int, str]
    ) -> None:
        """Replace the file of a slot with these chunks, reusing a file of the same content."""
        files = self._tables.setdefault(table.name, [])
        others = [it for it in files if it.end <= slot.start or it.start >= slot.end]
        if chunks:
            parts = {str(start): chunks[start].digest for start in sorted(chunks)}
            digests = {str(start): source_digests[start] for start in sorted(source_digests)}
            named = next(
                (it for it in files if it.parts == parts and (it.start, it.end) == (slot.start, slot.end)), None
            )
            path = named.path if named else slot.path(table, self.manifest.cluster, _name(parts))
            self._folders.add((self._root / path).parent)
            rows = self._write_file(table, path, chunks, multi_hour=_is_multi_hour(table, slot))
            others.append(DataFile(path, slot.start, slot.end, rows, parts, digests))
        self._tables[table.name] = sorted(others, key=lambda it: it.start)

    def _write_file(self, table: Table, path: str, chunks: Mapping[int, _Chunk], *, multi_hour: bool) -> int:
        """Write a file unless it already exists; return its number of rows."""
        final = self._root / path
        with suppress(OSError, pa.ArrowException):
            rows = pq.read_metadata(final).num_rows
            # It may be unreferenced and about to be vacuumed.
            os.utime(final)
            return int(rows)
        written = []

        def fill(file: IO[bytes]) -> None:
            in_order = (chunks[start].rows() for start in sorted(chunks))
            written.append(write_rows(file, table, in_order, multi_hour=multi_hour))

        try:
            atomic_write(final, fill)
        except pa.ArrowException as error:
            raise write_error(final, OSError(str(error))) from None
        return sum(written)


def _is_multi_hour(table: Table, it: FileSlot | DataFile) -> bool:
    """Whether a file holds minutes of several hours; files of days are rewritten too often to sort by object."""
    return table.name in MINUTES and it.end - it.start > hours_per_digest(table)


def _name(parts: Mapping[str, str]) -> str:
    return digest_of(text for item in parts.items() for text in item)


def _non_empty(manifest: Manifest) -> dict[str, tuple[DataFile, ...]]:
    return {name: tuple(files) for name, files in manifest.tables.items() if files}


def _baseline_day(table: Table, rows: pa.Table) -> date | None:
    """Partition date of baselines: the date of their latest `made_at`."""
    if table.name != BASELINES.name or not rows.num_rows:
        return None
    latest: date = pc.max(rows[table.time]).as_py().date()
    return latest


def _identity(rows: pa.Table) -> pa.Table:
    return rows


def _write_bytes(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

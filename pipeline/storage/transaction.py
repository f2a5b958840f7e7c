"""A transaction on the rollups of one cluster: new files are written next to the old ones, and count after a commit."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ackscope.clock import Clock
from ackscope.manifest import DataFile, Manifest
from ackscope.object_path import Place
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR, date_of
from pipeline.storage import delta_log
from pipeline.storage.data_file_writer import (
    FilePlan,
    TimeRange,
    WrittenFile,
    hour_ranges,
    read_part,
    rows_of_plan,
    write_file,
)
from pipeline.storage.layout import FileSlot, coarser_table, day_slot, hours_per_digest, row_hours, slot_for
from pipeline.storage.row_order import sort_by_time
from pipeline.storage.store import FileStore, store_of


class Transaction:
    """Staged files of one cluster, invisible until `commit`. Requires the writer lock.

    Hours are since 1970; for the table `baselines`, hours of the week.

    Attributes:
        manifest: the manifest that it started from; after a commit, the committed one.
    """

    def __init__(self, root: Place, manifest: Manifest, clock: Clock, *, delta: bool = False) -> None:
        self.manifest = manifest
        self._root, self._clock, self._delta = root, clock, delta
        self._tables = {name: list(files) for name, files in manifest.tables.items()}
        self._store: FileStore = store_of(root)
        self._new: set[str] = set()

    @property
    def store(self) -> FileStore:
        """Where its data files are."""
        return self._store

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
            read_part(self._store, table, it, max(start, it.start), min(end, it.end))
            for it in self.pending.files_for(table.name, start, end)
        ]
        return pa.concat_tables([arrow_schema(table).empty_table(), *found])

    def plan(self, table: Table, replaced: Iterable[TimeRange]) -> list[FilePlan]:
        """The files to write so that the rows of these ranges are replaced, sorted by their hours.

        Each is written by `write_file`, here or in an executor, and staged by `stage`. Ranges are sorted and apart.
        """
        by_slot: dict[FileSlot, list[TimeRange]] = defaultdict(list)
        for start, end in replaced:
            at = start
            while at < end:
                slot = self._slot_for(table, at // HOUR)
                until = min(end, slot.end * HOUR)
                by_slot[slot].append((at, until))
                at = until
        return [
            FilePlan(
                table,
                self.manifest.cluster,
                slot,
                tuple(ranges),
                self.pending.files_for(table.name, slot.start, slot.end),
            )
            for slot, ranges in sorted(by_slot.items(), key=lambda item: item[0].start)
        ]

    def is_current(self, plan: FilePlan) -> bool:
        """Whether the files that a plan started from are still those that count."""
        slot = plan.slot
        now = self.pending.files_for(plan.table.name, slot.start, slot.end)
        return [it.path for it in now] == [it.path for it in plan.existing]

    def stage(
        self, plan: FilePlan, written: WrittenFile, source_digests: Mapping[int, str | None] | None = None
    ) -> bool:
        """Put the file of a plan into its slot; False, and nothing changes, if that file is gone.

        `source_digests` is for tables of hours and days: the digest of the source rows of each; None forgets it.
        """
        slot, name = plan.slot, plan.table.name
        files = self._tables.setdefault(name, [])
        others = [it for it in files if it.end <= slot.start or it.start >= slot.end]
        if written.path:
            if self._store.renew(written.path) is None:
                return False
            made_of = {
                int(hour): text
                for it in self.pending.files_for(name, slot.start, slot.end)
                for hour, text in it.made_of.items()
            }
            made_of |= {
                hour: text or "" for hour, text in (source_digests or {}).items() if slot.start <= hour < slot.end
            }
            digests = {str(hour): text for hour, text in sorted(made_of.items()) if text}
            others.append(DataFile(written.path, slot.start, slot.end, written.rows, written.parts, digests))
            self._new.add(written.path)
        self._tables[name] = sorted(others, key=lambda it: it.start)
        return True

    def replace_hours(
        self, table: Table, hours: Iterable[int], rows: pa.Table, source_digests: Mapping[int, str] | None = None
    ) -> None:
        """Replace these hours of a table with the rows of `rows` that lie in them; its other hours stay.

        `source_digests` is for tables of hours and days: the digest of the source rows of each.

        Raises:
            DataError: a file cannot be written, or one that is replaced only in part cannot be read.
        """
        numbers = sorted(set(hours))
        digests = {hour: (source_digests or {}).get(hour) for hour in numbers}
        self._replace(table, hour_ranges(numbers), rows, digests)

    def upsert_ranges(self, table: Table, ranges: Iterable[TimeRange], rows: pa.Table) -> None:
        """Replace the minutes of these ranges, seconds since 1970, of a table of minutes with the rows in them.

        Raises:
            DataError: same as `replace_hours`.
        """
        self._replace(table, ranges, rows, {})

    def _replace(
        self, table: Table, replaced: Iterable[TimeRange], rows: pa.Table, source_digests: Mapping[int, str | None]
    ) -> None:
        ordered = sort_by_time(table, rows)
        for plan in self.plan(table, replaced):
            self.stage(plan, write_file(self._store, plan, rows_of_plan(plan, ordered)), source_digests)

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
        plan = FilePlan(table, self.manifest.cluster, slot, (), files)
        self.stage(plan, write_file(self._store, plan, arrow_schema(table).empty_table()))
        return True

    def commit(self) -> Manifest:
        """Make all staged changes visible together, durably; does nothing without changes.

        The Delta tables get the same state first, so that the manifest names versions that exist.

        Raises:
            DataError: the manifest cannot be written; then nothing has changed.
        """
        pending = self.pending
        if _non_empty(pending) == _non_empty(self.manifest):
            return self.manifest
        committed = replace(pending, number=self.manifest.number + 1, made_at=self._clock.now().iso())
        for one in {str(Path(it).parent): it for it in self._new}.values():
            self._store.sync(one)
        named = {it.path for files in pending.tables.values() for it in files}
        replaced = [it.path for files in self.manifest.tables.values() for it in files if it.path not in named]
        committed = self._with_delta(committed)
        self.manifest = self._store.commit(self.manifest, committed, replaced, self._clock.now().wall)
        self._new.clear()
        return self.manifest

    def _with_delta(self, committed: Manifest) -> Manifest:
        if self._delta:
            self._store.check(self.manifest)
            return replace(committed, versions=delta_log.publish(self._root, self.manifest, committed))
        if self.manifest.versions:
            delta_log.retire(self._root, self.manifest)
        return replace(committed, versions={})

    def _slot_for(self, table: Table, hour: int) -> FileSlot:
        slot = slot_for(table, hour)
        for it in self.pending.files_for(table.name, hour, hour + 1):
            if it.end - it.start > slot.end - slot.start:
                return day_slot(date_of(hour))
        return slot


def _non_empty(manifest: Manifest) -> dict[str, tuple[DataFile, ...]]:
    return {name: tuple(files) for name, files in manifest.tables.items() if files}

"""A change of the rollups of one cluster: files are written beside the others, and count once it is committed."""

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
from pipeline.hours import HOUR, date_of
from pipeline.schema import arrow_schema
from pipeline.storage.arranged import by_time, read, write
from pipeline.storage.digest import digest, digest_of
from pipeline.storage.durable import put, sync, unwritable
from pipeline.storage.shelves import Shelf, coarser, hour_of, shelf_of, unit, whole_day


@dataclass(frozen=True, slots=True)
class _Piece:
    """The rows of one hour or day, there when they are asked for."""

    digest: str
    rows: Callable[[], pa.Table]


class Change:
    """Staged files of one cluster, invisible until `commit`; for the only writer.

    Hours are since 1970, of the table of baselines those of the week.

    Attributes:
        catalog: what it started from; after a commit, what was committed.
    """

    def __init__(self, root: Path, manifest: Manifest, clock: Clock) -> None:
        self.manifest = manifest
        self._root, self._clock = root, clock
        self._tables = {name: list(files) for name, files in manifest.tables.items()}
        self._folders: set[Path] = set()

    @property
    def staged(self) -> Manifest:
        """What a commit would make of it now."""
        return replace(self.manifest, tables={name: tuple(files) for name, files in self._tables.items()})

    def rows(self, table: Table, start: int, end: int) -> pa.Table:
        """The rows of the hours from `start` to before `end` as they are staged now, in the order of the key.

        Raises:
            DataError: a file cannot be read.
        """
        found = [
            self._read(table, it, max(start, it.start), min(end, it.end))
            for it in self.staged.files_for(table.name, start, end)
        ]
        return pa.concat_tables([arrow_schema(table).empty_table(), *found])

    def replace(
        self, table: Table, hours: Iterable[int], rows: pa.Table, made_of: Mapping[int, str] | None = None
    ) -> None:
        """These hours of the table are now exactly those of `rows` that lie in them; its others stay as they are.

        `made_of` is for hours and days: the digest of the rows that each was made of.

        Raises:
            DataError: a file cannot be written, or one that is only in part replaced cannot be read.
        """
        numbers = hour_of(table, rows)
        wide = unit(table)
        asked: dict[int, set[int]] = defaultdict(set)
        for hour in hours:
            asked[hour - hour % wide].add(hour)
        pieces: dict[int, _Piece | None] = {}
        for start, mine in asked.items():
            part = by_time(table, rows.filter(pc.is_in(numbers, pa.array(sorted(mine), pa.int64()))))
            if len(mine) < wide:
                old = self.rows(table, start, start + wide)
                others = pc.invert(pc.is_in(hour_of(table, old), pa.array(sorted(mine), pa.int64())))
                part = by_time(table, pa.concat_tables([old.filter(others), part]))
            pieces[start] = _Piece(digest(part), partial(_same, part)) if part.num_rows else None
        of = {hour: (made_of or {}).get(hour) for mine in asked.values() for hour in mine}
        self._shelve(table, pieces, of, _day(table, rows))

    def amend(self, table: Table, start: int, end: int, rows: pa.Table) -> None:
        """From `start` to before `end`, seconds since 1970, a table of minutes is now exactly these rows.

        Raises:
            DataError: as of `replace`.
        """
        low, high = (pa.scalar(second * 1_000_000, pa.int64()) for second in (start, end))
        ordered = by_time(table, rows)
        hours = range(start // HOUR, -(-end // HOUR))
        edges = np.searchsorted(hour_of(table, ordered).to_numpy(), [*hours, hours.stop])
        pieces: dict[int, _Piece | None] = {}
        for hour, (first, last) in zip(hours, pairwise(edges.tolist()), strict=True):
            whole = ordered.slice(first, last - first)
            if not (start <= hour * HOUR and (hour + 1) * HOUR <= end):
                old = self.rows(table, hour, hour + 1)
                times = old[table.time].cast(pa.int64())
                # Time comes first in the key: what is before and after needs no sorting.
                before, after = old.filter(pc.less(times, low)), old.filter(pc.greater_equal(times, high))
                whole = pa.concat_tables([before, whole, after]).combine_chunks()
            pieces[hour] = _Piece(digest(whole), partial(_same, whole)) if whole.num_rows else None
        self._shelve(table, pieces, {}, None)

    def replace_all(self, table: Table, rows: pa.Table) -> None:
        """The whole table is now exactly these rows.

        Raises:
            DataError: as of `replace`.
        """
        wide = unit(table)
        known = {
            int(start) + hour for it in self._tables.get(table.name, ()) for start in it.parts for hour in range(wide)
        }
        given = {hour - hour % wide for hour in pc.unique(hour_of(table, rows)).to_pylist()}
        self.replace(table, known | {start + hour for start in given for hour in range(wide)}, rows)

    def drop(self, table: Table, hours: Iterable[int]) -> None:
        """Forget these hours; hours and days that were made of them stay.

        Raises:
            DataError: as of `replace`.
        """
        gone = set(hours)
        self.replace(table, gone, arrow_schema(table).empty_table())
        made = coarser(table)
        if made is None:
            return
        parts = {start: part for it in self._tables.get(table.name, ()) for start, part in it.parts.items()}
        starts = {str(hour - hour % unit(table)) for hour in gone}
        for index, it in enumerate(self._tables.get(made.name, ())):
            if starts & it.made_of.keys():
                # What is left of a day is no reason to make it again.
                kept = {start: parts.get(start) if start in starts else part for start, part in it.made_of.items()}
                left = {start: part for start, part in kept.items() if part is not None}
                self._tables[made.name][index] = replace(it, made_of=left)

    def compact(self, table: Table, day: date) -> bool:
        """Put the hour files of a date into one, hour by hour; whether there was anything to do.

        Raises:
            DataError: a file cannot be read or written.
        """
        shelf = whole_day(day)
        files = self.staged.files_for(table.name, shelf.start, shelf.end)
        if not files or [(it.start, it.end) for it in files] == [(shelf.start, shelf.end)]:
            return False
        pieces = {start: piece for it in files for start, piece in self._pieces(table, it)}
        self._put_on(table, shelf, pieces, {})
        return True

    def commit(self) -> Manifest:
        """Make it all count at once, durably; does nothing where nothing changed.

        Raises:
            DataError: the disk does not take it; then nothing has changed.
        """
        staged = self.staged
        if _plain(staged) == _plain(self.manifest):
            return self.manifest
        committed = replace(staged, number=self.manifest.number + 1, made_at=self._clock.now().iso())
        for folder in self._folders:
            sync(folder)
        named = {it.path for files in staged.tables.values() for it in files}
        for files in self.manifest.tables.values():
            for it in files:
                if it.path not in named:
                    # From now on, and not since it was written, it stays for its readers.
                    with suppress(OSError):
                        os.utime(self._root / it.path)
        path = manifest_path(self._root, committed.cluster)
        put(path, partial(_write_bytes, encode(committed)))
        sync(path.parent)
        self.manifest = committed
        self._folders.clear()
        return committed

    def _shelve(
        self, table: Table, pieces: Mapping[int, _Piece | None], made_of: Mapping[int, str | None], day: date | None
    ) -> None:
        """Put pieces, or nothing, in the place of those of the same hours."""
        shelves: dict[Shelf, dict[int, _Piece | None]] = defaultdict(dict)
        for start, piece in pieces.items():
            shelves[self._shelf(table, start, day)][start] = piece
        for shelf, mine in shelves.items():
            files = self.staged.files_for(table.name, shelf.start, shelf.end)
            before = {start: piece for it in files for start, piece in self._pieces(table, it)}
            after = {start: piece for start, piece in (before | mine).items() if piece is not None}
            bound = {int(hour): text for it in files for hour, text in it.made_of.items()}
            bound |= {hour: text or "" for hour, text in made_of.items() if shelf.start <= hour < shelf.end}
            self._put_on(table, shelf, after, {hour: text for hour, text in bound.items() if text})

    def _shelf(self, table: Table, hour: int, day: date | None) -> Shelf:
        shelf = shelf_of(table, hour, day)
        for it in self.staged.files_for(table.name, hour, hour + 1):
            if it.end - it.start > shelf.end - shelf.start:
                return whole_day(date_of(hour))
        return shelf

    def _pieces(self, table: Table, it: DataFile) -> Iterator[tuple[int, _Piece]]:
        for start, text in it.parts.items():
            hour = int(start)
            yield hour, _Piece(text, partial(self._read, table, it, hour, hour + unit(table)))

    def _read(self, table: Table, it: DataFile, start: int, end: int) -> pa.Table:
        """Some hours of a file, in the order of the key."""
        return read(self._root / it.path, table, start, end, several=_several(table, it))

    def _put_on(self, table: Table, shelf: Shelf, pieces: Mapping[int, _Piece], made_of: Mapping[int, str]) -> None:
        """The file of a shelf is now exactly these pieces; it is not written where one with the same content stands."""
        files = self._tables.setdefault(table.name, [])
        others = [it for it in files if it.end <= shelf.start or it.start >= shelf.end]
        if pieces:
            parts = {str(start): pieces[start].digest for start in sorted(pieces)}
            of = {str(start): made_of[start] for start in sorted(made_of)}
            named = next(
                (it for it in files if it.parts == parts and (it.start, it.end) == (shelf.start, shelf.end)), None
            )
            path = named.path if named else shelf.path(table, self.manifest.cluster, _name(parts))
            self._folders.add((self._root / path).parent)
            rows = self._stage(table, path, pieces, several=_several(table, shelf))
            others.append(DataFile(path, shelf.start, shelf.end, rows, parts, of))
        self._tables[table.name] = sorted(others, key=lambda it: it.start)

    def _stage(self, table: Table, path: str, pieces: Mapping[int, _Piece], *, several: bool) -> int:
        """Write a file, unless it is there and whole; how many rows it has."""
        final = self._root / path
        with suppress(OSError, pa.ArrowException):
            rows = pq.read_metadata(final).num_rows
            # It may have been left, and be about to be swept.
            os.utime(final)
            return int(rows)
        written = []

        def fill(file: IO[bytes]) -> None:
            in_order = (pieces[start].rows() for start in sorted(pieces))
            written.append(write(file, table, in_order, several=several))

        try:
            put(final, fill)
        except pa.ArrowException as error:
            raise unwritable(final, OSError(str(error))) from None
        return sum(written)


def _several(table: Table, it: Shelf | DataFile) -> bool:
    """Whether a file holds minutes of several hours: a month of days is written again and again, day by day."""
    return table.name in MINUTES and it.end - it.start > unit(table)


def _name(parts: Mapping[str, str]) -> str:
    return digest_of(text for item in parts.items() for text in item)


def _plain(manifest: Manifest) -> dict[str, tuple[DataFile, ...]]:
    return {name: tuple(files) for name, files in manifest.tables.items() if files}


def _day(table: Table, rows: pa.Table) -> date | None:
    """The folder of rows whose hours are those of the week."""
    if table.name != BASELINES.name or not rows.num_rows:
        return None
    latest: date = pc.max(rows[table.time]).as_py().date()
    return latest


def _same(rows: pa.Table) -> pa.Table:
    return rows


def _write_bytes(document: bytes, file: IO[bytes]) -> None:
    file.write(document)

"""Read statistics of a landing file, and check that it is intact and fits its table.

Where the statistics in the footer of a file are damaged, Arrow ends the process instead of raising an exception
(26.0: `RowGroupMetaData.column`). So the footer counts only if the pipeline wrote the file itself, when it compacted
others; of every other file the time column is read.
"""

import sys
from dataclasses import dataclass, replace
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.arrow_files import parquet_file
from ackscope.object_path import ObjectStorageError, Place
from ackscope.tables import Table
from pipeline.hours import HOUR, REACH, first_hour
from pipeline.schema import mismatch

_HOUR_MICROS = HOUR * 1_000_000

# Rows dated further ahead of now than this come from a wrong clock.
MAX_AHEAD_SECONDS = 3600.0

# Each costs a millisecond of CPU, however few rows it has. The exporter writes one for a million rows.
_MOST_ROW_GROUPS = 1000


class ForeignFileError(Exception):
    """The file is damaged or does not fit the table; the text says why. Never leaves the storage."""


@dataclass(frozen=True, slots=True)
class FileStats:
    """Statistics of an intact landing file.

    Attributes:
        rows: rows that count.
        hours: hours since 1970 that they lie in.
        first, last: time of the earliest and the latest of them, microseconds since 1970.
        misdated: rows that do not count: more than a day outside the date of their folder, or more than
            `MAX_AHEAD_SECONDS` ahead of now.
        early: the misdated rows that are only ahead of now and will count later.
        only_known_columns: it has no columns that the table does not declare.
        floor: hours before this one have expired and are never rebuilt.
        arrived_at: when the file arrived, seconds since 1970; for compacted files, the newest source. 0.0: unknown.
    """

    rows: int
    hours: frozenset[int]
    first: int
    last: int
    misdated: int
    early: int = 0
    only_known_columns: bool = True
    floor: int = 0
    arrived_at: float = 0.0

    @property
    def nearby_hours(self) -> set[int]:
        """Hours that begin or end within `REACH` of a row, and possibly some more."""
        edges = {(self.first - REACH * 1_000_000) // _HOUR_MICROS, (self.last + REACH * 1_000_000) // _HOUR_MICROS}
        inner = {hour + shift for hour in self.hours for shift in (-1, 1)} if len(self.hours) > 1 else set()
        return {hour for hour in edges | inner if hour >= self.floor}

    def from_floor(self, floor: int) -> "FileStats":
        """The same statistics without hours before `floor`."""
        if not self.hours or floor <= min(self.hours) - 1:
            return self
        return replace(self, hours=frozenset(hour for hour in self.hours if hour >= floor), floor=floor)


def valid_window(day: date, now: float) -> tuple[int, int]:
    """The start and end (exclusive) of valid times in the folder of a date, microseconds since 1970."""
    start, end = (first_hour(day) - 24) * _HOUR_MICROS, (first_hour(day) + 48) * _HOUR_MICROS
    return start, max(start, min(end, int((now + MAX_AHEAD_SECONDS) * 1_000_000)))


def read_stats(path: Place, table: Table, day: date, now: float, *, is_ours: bool = False) -> FileStats:
    """Read the statistics of one landing file.

    Args:
        path: the file.
        table: the table that it should belong to.
        day: the date of its folder.
        now: seconds since 1970.
        is_ours: whether the pipeline wrote it, so that its footer counts.

    Raises:
        ForeignFileError: it is damaged or does not fit the table.
        FileNotFoundError: it was removed.
        PermissionError: it is not readable.
    """
    try:
        with parquet_file(path) as file:
            groups = file.metadata.num_row_groups
            if groups > _MOST_ROW_GROUPS and not is_ours:
                raise ForeignFileError(f"it has {groups} row groups, and at most {_MOST_ROW_GROUPS} are read")
            reason = mismatch(table, file.schema_arrow)
            if reason is not None:
                raise ForeignFileError(reason)
            for column in table.columns:
                if not column.nullable and _nulls(file, column.name, is_ours=is_ours):
                    raise ForeignFileError(f"column {column.name!r} has rows without a value")
            return _hours(file, table, day, now, is_ours=is_ours)
    except (FileNotFoundError, PermissionError, ObjectStorageError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise ForeignFileError(_first_line(error)) from None


def verify_pages(path: Place, table: Table) -> None:
    """Read every value; this finds damage that the footer does not show.

    Raises:
        ForeignFileError: a page is damaged.
        FileNotFoundError: it was removed.
    """
    try:
        with parquet_file(path) as file:
            for _ in file.iter_batches(columns=list(table.names)):
                pass
    except (FileNotFoundError, ObjectStorageError):
        raise
    except (pa.ArrowException, OSError) as error:
        raise ForeignFileError(_first_line(error)) from None


def _hours(file: pq.ParquetFile, table: Table, day: date, now: float, *, is_ours: bool) -> FileStats:
    start, end = valid_window(day, now)
    latest = (first_hour(day) + 48) * _HOUR_MICROS
    rows, early, first, last, hours = 0, 0, end, start, set[int]()
    for group in range(file.metadata.num_row_groups):
        low, high = _time_range(file, group, table.time) if is_ours else (-sys.maxsize, sys.maxsize)
        if start <= low and high < end and low // _HOUR_MICROS == high // _HOUR_MICROS:
            rows += file.metadata.row_group(group).num_rows
            hours.add(low // _HOUR_MICROS)
        else:
            times = file.read_row_group(group, columns=[table.time])[table.time].cast(pa.int64())
            is_early = pc.and_(pc.greater_equal(times, end), pc.less(times, latest))
            early += pc.sum(is_early.cast(pa.int64())).as_py() or 0
            times = times.filter(pc.and_(pc.greater_equal(times, start), pc.less(times, end)))
            if not len(times):
                continue
            rows += len(times)
            hours |= set(pc.unique(pc.divide(times, _HOUR_MICROS)).to_pylist())
            low, high = pc.min(times).as_py(), pc.max(times).as_py()
        first, last = min(first, low), max(last, high)
    only_known_columns = set(file.schema_arrow.names) <= set(table.names)
    return FileStats(rows, frozenset(hours), first, last, file.metadata.num_rows - rows, early, only_known_columns)


def _time_range(file: pq.ParquetFile, group: int, name: str) -> tuple[int, int]:
    """First and last time of a row group; the widest range if the footer has no statistics."""
    statistics = _column(file, group, name).statistics
    if statistics is None or not statistics.has_min_max:
        return (-sys.maxsize, sys.maxsize)
    # Raw numbers, because a time outside the years 1 to 9999 has no `datetime`.
    return statistics.min_raw, statistics.max_raw


def _nulls(file: pq.ParquetFile, name: str, *, is_ours: bool) -> bool:
    if not file.schema_arrow.field(name).nullable:
        return False
    for group in range(file.metadata.num_row_groups):
        statistics = _column(file, group, name).statistics if is_ours else None
        if statistics is not None and statistics.has_null_count:
            if statistics.null_count:
                return True
        elif file.read_row_group(group, columns=[name])[name].null_count:
            return True
    return False


def _column(file: pq.ParquetFile, group: int, name: str) -> pq.ColumnChunkMetaData:
    # Our columns are not nested, so the leaf columns are in the order of the schema.
    return file.metadata.row_group(group).column(file.schema_arrow.get_field_index(name))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)

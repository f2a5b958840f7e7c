"""How rows lie in a file of rollups: hour after hour, or, in a file of several, object after object.

Who asks for some minutes of all objects finds them in the files of their hours; who asks for a week of one object, in
a few row groups of each day: of all others the footers say that they do not hold it.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ackscope.errors import DataError
from ackscope.tables import BASELINES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR

_ROW_GROUP = 262_144
"""Rows of a row group at most: a reader of one minute skips the others."""

_ROW_GROUP_BY_OBJECT = 65_536
"""The same in a file of several hours: a reader of one object skips the others."""

_SORT_ROWS = 2_000_000
"""Rows that are put in order together: three hours of 10,000 queues; a reader of some hours skips the others."""

_MAX_RANKS = 1 << 62
"""Places that are told apart by one number; beyond, those that nobody has are left out first."""


def sort_by_time(table: Table, rows: pa.Table) -> pa.Table:
    """The columns of the contract, in the order of the key: time first."""
    return _sorted(rows.select(list(table.names)).cast(arrow_schema(table)), table.key)


def write_rows(file: IO[bytes], table: Table, hours: Iterable[pa.Table], *, multi_hour: bool) -> int:
    """Write a file; how many rows it has.

    Args:
        file: open for bytes.
        table: of the rows.
        pieces: the rows of each hour, or day, by time.
        several: whether the file is for more than one of them.

    Raises:
        pyarrow.ArrowException: the file cannot be written.
    """
    written = 0
    with pq.ParquetWriter(file, arrow_schema(table), compression="zstd") as writer:
        for rows in _sorted_by_object(table, hours) if multi_hour else hours:
            writer.write_table(rows, row_group_size=_ROW_GROUP_BY_OBJECT if multi_hour else _ROW_GROUP)
            written += rows.num_rows
    return written


def read_hours(path: Path, table: Table, start: int, end: int, *, multi_hour: bool) -> pa.Table:
    """The rows of the hours from `start` to before `end`, by time; of baselines, all.

    Args:
        path: a file.
        table: that it is of.
        start: hour since 1970.
        end: likewise.
        several: whether it is for several of them.

    Raises:
        DataError: it cannot be read.
    """
    try:
        rows = ds.dataset(str(path), schema=arrow_schema(table), format="parquet")
        if table.name == BASELINES.name:
            return rows.to_table()
        kind = arrow_schema(table).field(table.time).type
        when = ds.field(table.time)
        low, high = (pa.scalar(hour * HOUR * 1_000_000, pa.int64()).cast(kind) for hour in (start, end))
        found = rows.to_table(filter=(when >= low) & (when < high))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"{path}: cannot be read ({reason}); `ackscope pipeline backfill` makes it anew while landing has its rows"
        ) from None
    return sort_by_time(table, found) if multi_hour else found


def _sorted_by_object(table: Table, hours: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """As many pieces as make `_TOGETHER` at a time, in the order of the key: time last."""
    order = [*(name for name in table.key if name != table.time), table.time]
    batch: list[pa.Table] = []
    for rows in hours:
        if batch and sum(it.num_rows for it in batch) + rows.num_rows > _SORT_ROWS:
            yield _sorted(pa.concat_tables(batch), order)
            batch = []
        batch.append(rows)
    if batch:
        yield _sorted(pa.concat_tables(batch), order)


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """By these columns, the first one first; nulls last, equal rows as they came."""
    # Text is compared once a value, and not once a pair of rows: a third of the time.
    places = np.zeros(rows.num_rows, np.int64)
    distinct_so_far = 1
    for name in order:
        ranks, distinct = _ranks(rows[name])
        if distinct_so_far * distinct > _MAX_RANKS:
            _, places = np.unique(places, return_inverse=True)
            distinct_so_far = rows.num_rows
        places, distinct_so_far = places * distinct + ranks, distinct_so_far * distinct
    return rows.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks()


def _ranks(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """The place of each value among all distinct ones, and how many places there are."""
    coded = column.combine_chunks().dictionary_encode()
    values = len(coded.dictionary)
    ranks = np.empty(values + 1, np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(values)
    ranks[values] = values
    return ranks[pc.fill_null(coded.indices, values).to_numpy()], values + 1

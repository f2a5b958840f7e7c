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
from pipeline.hours import HOUR
from pipeline.schema import arrow_schema

_GROUP = 262_144
"""Rows of a row group at most: a reader of one minute skips the others."""

_GROUP_OF_OBJECTS = 65_536
"""The same in a file of several hours: a reader of one object skips the others."""

_TOGETHER = 2_000_000
"""Rows that are put in order together: three hours of 10,000 queues; a reader of some hours skips the others."""

_MOST = 1 << 62
"""Places that are told apart by one number; beyond, those that nobody has are left out first."""


def by_time(table: Table, rows: pa.Table) -> pa.Table:
    """The columns of the contract, in the order of the key: time first."""
    return _sorted(rows.select(list(table.names)).cast(arrow_schema(table)), table.key)


def write(file: IO[bytes], table: Table, pieces: Iterable[pa.Table], *, several: bool) -> int:
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
        for rows in _by_object(table, pieces) if several else pieces:
            writer.write_table(rows, row_group_size=_GROUP_OF_OBJECTS if several else _GROUP)
            written += rows.num_rows
    return written


def read(path: Path, table: Table, start: int, end: int, *, several: bool) -> pa.Table:
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
    return by_time(table, found) if several else found


def _by_object(table: Table, pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """As many pieces as make `_TOGETHER` at a time, in the order of the key: time last."""
    order = [*(name for name in table.key if name != table.time), table.time]
    held: list[pa.Table] = []
    for rows in pieces:
        if held and sum(it.num_rows for it in held) + rows.num_rows > _TOGETHER:
            yield _sorted(pa.concat_tables(held), order)
            held = []
        held.append(rows)
    if held:
        yield _sorted(pa.concat_tables(held), order)


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """By these columns, the first one first; nulls last, equal rows as they came."""
    # Text is compared once a value, and not once a pair of rows: a third of the time.
    places = np.zeros(rows.num_rows, np.int64)
    many = 1
    for name in order:
        ranks, distinct = _ranks(rows[name])
        if many * distinct > _MOST:
            _, places = np.unique(places, return_inverse=True)
            many = rows.num_rows
        places, many = places * distinct + ranks, many * distinct
    return rows.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks()


def _ranks(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], int]:
    """The place of each value among all distinct ones, and how many places there are."""
    coded = column.combine_chunks().dictionary_encode()
    values = len(coded.dictionary)
    ranks = np.empty(values + 1, np.int64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(values)
    ranks[values] = values
    return ranks[pc.fill_null(coded.indices, values).to_numpy()], values + 1

"""Blocks: rows of one table, cluster and date, kept as objects until they are written. Pure.

100,000 queues are 100,000 references to objects that are in memory anyway; they become Arrow columns only when written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from exporter.landing.columns import column

_NUMBERS = count()

Columns = Sequence[Sequence[Any]]
"""Values by column, in the order of the table; times in microseconds since 1970."""


class BlockKey(NamedTuple):
    """Destination of rows: table, cluster and date.

    Attributes:
        date: UTC date of the rows' own time, `YYYY-MM-DD`.
    """

    table: Table
    cluster: str
    date: str

    @property
    def folder(self) -> str:
        """Directory of its files, relative to the landing root."""
        return f"{self.table.name}/cluster={self.cluster}/date={self.date}"


class Block:
    """Rows waiting to be written.

    Attributes:
        key: destination.
        rows: number of rows.
        retried: a write has failed, and since then the rows are kept as columns.
        number: serial number; a lower one is older.

    Args:
        columns: creates the columns. Called once, in the writing thread.
    """

    __slots__ = ("_arrow", "_columns", "key", "number", "retried", "rows")

    def __init__(self, key: BlockKey, rows: int, columns: Callable[[], Columns] | None, arrow: pa.Table = None) -> None:
        self.key, self.rows = key, rows
        self._columns, self._arrow = columns, arrow
        self.retried, self.number = columns is None, next(_NUMBERS)

    def arrow(self) -> pa.Table:
        """The rows with exactly the declared schema.

        Raises:
            pa.ArrowException: a value does not fit its column.
            Exception: an object lacks an attribute.
        """
        if self._columns is not None:
            self._arrow = arrow_table(self.key.table, self._columns())
            self._columns = None
        return self._arrow

    def without_oldest(self, rows: int) -> "Block":
        """Copy without the first `rows` rows."""
        columns, arrow = self._columns, self._arrow
        if columns is None:
            rest = Block(self.key, self.rows - rows, None, arrow.slice(rows))
        else:
            rest = Block(self.key, self.rows - rows, lambda: [values[rows:] for values in columns()])
        rest.number = self.number
        return rest


def join(blocks: Sequence[Block]) -> pa.Table:
    """Join blocks of one key into one Arrow table."""
    return pa.concat_tables([block.arrow() for block in blocks]) if len(blocks) != 1 else blocks[0].arrow()


def arrow_table(table: Table, columns: Columns) -> pa.Table:
    """Convert columns to an Arrow table of the declared schema. Checks for nulls too, which Arrow does not."""
    arrays = [column(it.kind, values) for it, values in zip(table.columns, columns, strict=True)]
    for array, it in zip(arrays, table.columns, strict=True):
        if array.null_count and not it.nullable:
            raise pa.ArrowInvalid(f"column {it.name} has nulls")
    return pa.Table.from_arrays(arrays, schema=arrow_schema(table))


def record_blocks(table: Table, cluster: str, records: Iterable[Any]) -> list[Block]:
    """Return blocks of records.

    The attributes of a record are named like the columns; the first is the time in seconds since 1970.
    """
    read = attrgetter(*table.names)
    by_date: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        wall, *rest = read(record)
        by_date[date(wall)].append((micros(wall), *rest))
    return [_of_rows(BlockKey(table, cluster, day), rows) for day, rows in by_date.items()]


def row_blocks(table: Table, cluster: str, wall: float, rows: Sequence[tuple[Any, ...]]) -> list[Block]:
    """Return a block of rows at the time `wall`. The rows lack the time column; without rows there is no block."""
    at = micros(wall)
    return [_of_rows(BlockKey(table, cluster, date(wall)), [(at, *row) for row in rows])] if rows else []


def _of_rows(key: BlockKey, rows: list[tuple[Any, ...]]) -> Block:
    return Block(key, len(rows), lambda: list(zip(*rows, strict=True)))


def micros(wall: float) -> int:
    """Convert seconds since 1970 to microseconds."""
    return round(wall * 1_000_000)


def date(wall: float) -> str:
    """Return the UTC date of a time in seconds since 1970."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d")

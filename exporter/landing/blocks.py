"""Blocks: rows of one table, cluster and date, as the objects that they are read off until a file needs them. Pure.

A hundred thousand queues are a hundred thousand references here, to objects that are in memory anyway; they become
Arrow columns, and nothing in between, when they are written.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa

from ackscope.tables import Table
from exporter.landing.columns import ARROW, column

_NUMBERS = count()

Columns = Sequence[Sequence[Any]]
"""Values by column, in the order of the table; times as microseconds since 1970."""


class BlockKey(NamedTuple):
    """What one file holds.

    Attributes:
        date: UTC date of the rows' own time, `YYYY-MM-DD`.
    """

    table: Table
    cluster: str
    date: str

    @property
    def folder(self) -> str:
        """Where its files are, below the landing folder."""
        return f"{self.table.name}/cluster={self.cluster}/date={self.date}"


class Block:
    """Rows that wait to be written.

    Attributes:
        key: where they belong.
        rows: how many they are.
        waited: the disk did not take them once; they are columns since.
        number: grows with every block, and tells which one is older.

    Args:
        columns: makes the columns, once, in the thread that writes.
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
            Exception: an object is none that has these columns.
        """
        if self._columns is not None:
            self._arrow = arrow_table(self.key.table, self._columns())
            self._columns = None
        return self._arrow

    def without_oldest(self, rows: int) -> "Block":
        """The same without its first rows."""
        columns, arrow = self._columns, self._arrow
        if columns is None:
            rest = Block(self.key, self.rows - rows, None, arrow.slice(rows))
        else:
            rest = Block(self.key, self.rows - rows, lambda: [values[rows:] for values in columns()])
        rest.number = self.number
        return rest


def join(blocks: Sequence[Block]) -> pa.Table:
    """Blocks of one key as one Arrow table."""
    return pa.concat_tables([block.arrow() for block in blocks]) if len(blocks) != 1 else blocks[0].arrow()


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns as Arrow sees them."""
    return pa.schema([pa.field(it.name, ARROW[it.kind], nullable=it.nullable) for it in table.columns])


def arrow_table(table: Table, columns: Columns) -> pa.Table:
    """Columns as an Arrow table with exactly the declared schema, which Arrow itself does not check for nulls."""
    arrays = [column(it.kind, values) for it, values in zip(table.columns, columns, strict=True)]
    for array, it in zip(arrays, table.columns, strict=True):
        if array.null_count and not it.nullable:
            raise pa.ArrowInvalid(f"column {it.name} has rows without a value")
    return pa.Table.from_arrays(arrays, schema=arrow_schema(table))


def record_blocks(table: Table, cluster: str, records: Iterable[Any]) -> list[Block]:
    """Records that bear the names of the table's columns; its first column is their time, seconds since 1970."""
    read = attrgetter(*table.names)
    by_date: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for record in records:
        wall, *rest = read(record)
        by_date[date(wall)].append((micros(wall), *rest))
    return [_of_rows(BlockKey(table, cluster, day), rows) for day, rows in by_date.items()]


def row_blocks(table: Table, cluster: str, wall: float, rows: Sequence[tuple[Any, ...]]) -> list[Block]:
    """A few rows of one moment, each without that moment; no block where there are none."""
    at = micros(wall)
    return [_of_rows(BlockKey(table, cluster, date(wall)), [(at, *row) for row in rows])] if rows else []


def _of_rows(key: BlockKey, rows: list[tuple[Any, ...]]) -> Block:
    return Block(key, len(rows), lambda: list(zip(*rows, strict=True)))


def micros(wall: float) -> int:
    """Seconds since 1970 as whole microseconds."""
    return round(wall * 1_000_000)


def date(wall: float) -> str:
    """The UTC date of a moment."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d")

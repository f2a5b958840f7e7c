"""Arrays as columns of a declared table."""

import pyarrow as pa

from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from bench.pipeline.cluster import Ints
from bench.pipeline.simulation import SimulatedSteps


def at(stretch: SimulatedSteps, step: Ints) -> pa.Array:
    """Return the start times of these steps."""
    return pa.array((stretch.first + step * stretch.step) * 1_000_000, pa.timestamp("us", tz="UTC"))


def named(names: list[str], places: Ints) -> pa.Array:
    """Return the names at these indexes."""
    return pa.array(names, pa.string()).take(pa.array(places))


def ordered(table: Table, columns: dict[str, pa.Array]) -> pa.Table:
    """Return the columns as rows of the table; missing nullable columns are null."""
    rows = pa.table(columns)
    for column in table.columns:
        if column.nullable and column.name not in columns:
            rows = rows.append_column(column.name, pa.nulls(rows.num_rows))
    return rows.select(list(table.names)).cast(arrow_schema(table))

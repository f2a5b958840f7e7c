"""The Arrow schema of a table's files, for all their writers and readers."""

from typing import Any

import pyarrow as pa

from ackscope.tables.contract import Kind, Table

ARROW_TYPES: dict[Kind, Any] = {
    Kind.STRING: pa.string(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns in order; the partition columns are in the path only."""
    return pa.schema([pa.field(it.name, ARROW_TYPES[it.kind], nullable=it.nullable) for it in table.columns])

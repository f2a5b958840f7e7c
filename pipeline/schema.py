"""The Spark schema of a table, and the check of a file's schema against it."""

import pyarrow as pa
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ackscope.tables import Kind, Table
from ackscope.tables.arrow import ARROW_TYPES

_SPARK: dict[Kind, DataType] = {
    Kind.STRING: StringType(),
    Kind.INT: LongType(),
    Kind.FLOAT: DoubleType(),
    Kind.BOOL: BooleanType(),
    Kind.TIME: TimestampType(),
}


def spark_schema(table: Table) -> StructType:
    """The table's columns for `DataFrameReader.schema`, without the partition columns."""
    return StructType([StructField(column.name, _SPARK[column.kind]) for column in table.columns])


def mismatch(table: Table, found: pa.Schema) -> str | None:
    """Why a file with this schema does not fit the table; None if it does.

    Additional columns are fine: a newer writer may add some. So are missing nullable columns: an older writer did not
    have them, and they are read as null.
    """
    for column in table.columns:
        index = found.get_field_index(column.name)
        if index < 0 and column.nullable:
            continue
        if index < 0:
            return f"has no column {column.name!r}"
        kind = _plain(found.field(index).type)
        if kind != ARROW_TYPES[column.kind]:
            return f"column {column.name!r} is {kind}, not {ARROW_TYPES[column.kind]}"
    return None


def _plain(kind: pa.DataType) -> pa.DataType:
    """Dictionary and large strings are plain strings in a Parquet file."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind

"""Downsample any table, minutes to hours and hours to days. Each column declares how its values merge.

With Arrow and without Spark: an hour depends on the rows of one file alone, so there is nothing to shuffle, and to plan
a query would take longer than most tables need.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ackscope.tables import Column, Kind, Merge, Table
from ackscope.tables.arrow import arrow_schema

_NANO = 1_000_000_000

# Microseconds by the name of the time column.
_WIDTHS = {"hour": 3_600_000_000, "day": 86_400_000_000}

_FUNCTIONS = {Merge.SUM: "sum", Merge.MAX: "max", Merge.MIN: "min", Merge.LAST: "last"}


def downsampled(rows: pa.Table, source: Table, target: Table) -> pa.Table:
    """One row of `target` for all rows of `source` in its time range with the same key.

    Seconds are added as whole nanoseconds, so hours made of minutes equal hours made of landing rows, and days made of
    hours equal days made of minutes, to the last bit, while a sum is less than 26 days.

    Args:
        rows: rows of `source`, each once; all rows of an hour or day, or none.
        source: a table of minutes or hours.
        target: the table that `coarser` made of it, or of the same minutes.

    Raises:
        pyarrow.ArrowException: a sum of integers is too large.
    """
    same = tuple(it.name for it in target.columns if it.merge is Merge.SAME)
    by = (*target.key, *same)
    rows = _in_order_of_time(rows, source.time)
    # Without the time zone: Arrow would look it up in files that a small image does not have.
    micros = rows[source.time].cast(pa.int64())
    start = pa.array(micros.to_numpy() // _WIDTHS[target.time] * _WIDTHS[target.time])
    columns: dict[str, pa.ChunkedArray | pa.Array] = {target.time: start}
    columns |= {name: rows[name] for name in by if name != target.time}
    values = [it for it in target.columns if it.name not in by]
    for it in values:
        columns[it.name] = _value(it, rows[it.name]) if it.name in source.names else micros
    functions = [(it.name, "count" if _is_count(it, source) else _function(it)) for it in values]
    # One thread, because `last` needs the order.
    found = pa.table(columns).group_by([*by], use_threads=False).aggregate(functions)
    named = {name: found[name] for name in by}
    for it, (name, function) in zip(values, functions, strict=True):
        named[name] = _merged(it, found[f"{name}_{function}"])
    schema = arrow_schema(target)
    return pa.table([named[field.name].cast(field.type) for field in schema], schema=schema)


def _in_order_of_time(rows: pa.Table, time: str) -> pa.Table:
    moments = rows[time].cast(pa.int64()).to_numpy()
    if np.all(moments[1:] >= moments[:-1]):
        return rows
    return rows.take(pa.array(np.argsort(moments, kind="stable")))


def _is_count(column: Column, source: Table) -> bool:
    """Whether it counts the rows of minutes, which have no such column."""
    return column.name not in source.names and column.merge is Merge.SUM


def _function(column: Column) -> str:
    if column.merge not in _FUNCTIONS:
        raise ValueError(f"{column.name}: declares no merge rule")
    return _FUNCTIONS[column.merge]


def _value(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """What is merged: of seconds that are added, whole nanoseconds."""
    if column.merge is not Merge.SUM:
        return values
    if column.kind is Kind.FLOAT:
        return pc.round(pc.multiply(values, float(_NANO)), round_mode="half_to_even").cast(pa.int64())
    most = pc.max(pc.abs(values)).as_py()
    # Arrow adds integers without a check; decimal numbers are slower, and are checked when they become integers again.
    return values if (most or 0) * len(values) < 1 << 63 else values.cast(pa.decimal128(19))


def _merged(column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.merge is Merge.SUM and column.kind is Kind.FLOAT:
        values = values if column.nullable else pc.fill_null(values, 0)
        return pc.divide(values.cast(pa.float64(), safe=False), float(_NANO))
    return values

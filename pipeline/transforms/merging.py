"""Downsample any table, minutes to hours and hours to days. Each column declares how its values merge."""

from collections.abc import Sequence

from pyspark.sql import Column as Spark
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import Column, Kind, Merge, Table
from pipeline.transforms.common import nanoseconds, seconds


def downsampled(rows: DataFrame, source: Table, target: Table, scope: Sequence[str] = ()) -> DataFrame:
    """One row of `target` for all rows of `source` in its time range with the same key.

    Seconds are added as whole nanoseconds, so hours made of minutes equal hours made of landing rows, and days made of
    hours equal days made of minutes, to the last bit, while a sum is less than 26 days.

    Args:
        rows: rows of `source`, each once; all rows of an hour or day, or none.
        source: a table of minutes or hours.
        target: the table that `coarser` made of it, or of the same minutes.
        scope: columns that are part of every key, and come first in the result.
    """
    same = tuple(it.name for it in target.columns if it.merge is Merge.SAME)
    key = tuple(name for name in target.key if name != target.time)
    start = F.date_trunc(target.time, F.col(source.time)).alias(target.time)
    excluded = {target.time, *key, *same}
    values = [_aggregate(it, source) for it in target.columns if it.name not in excluded]
    return rows.groupBy(*scope, start, *key, *same).agg(*values).select(*scope, *target.names)


def _aggregate(column: Column, source: Table) -> Spark:
    if column.name not in source.names:
        return _coverage(column, source).alias(column.name)
    value = F.col(column.name)
    if column.merge is Merge.SUM and column.kind is Kind.FLOAT:
        total = nanoseconds(value)
        downsampled = F.when(total.isNotNull(), seconds(total)) if column.nullable else seconds(total)
    elif column.merge is Merge.SUM:
        downsampled = F.sum(value)
    elif column.merge is Merge.MAX:
        downsampled = F.max(value)
    elif column.merge is Merge.MIN:
        downsampled = F.min(value)
    elif column.merge is Merge.LAST:
        downsampled = F.max_by(value, F.when(value.isNotNull(), F.col(source.time)))
    else:
        raise ValueError(f"{source.name}.{column.name}: declares no merge rule")
    return downsampled.alias(column.name)


def _coverage(column: Column, source: Table) -> Spark:
    """The number of minutes, the first and the last, which a table of minutes does not have as columns."""
    if column.merge is Merge.SUM:
        return F.count("*")
    return (F.min if column.merge is Merge.MIN else F.max)(source.time)

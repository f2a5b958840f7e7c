"""Table files as Spark DataFrames."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.manifest import Manifest
from ackscope.tables import Table
from pipeline.hours import HOUR
from pipeline.schema import spark_schema

_GLOB = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})


def read_files(spark: SparkSession, table: Table, paths: Sequence[Path]) -> DataFrame:
    """The rows of these files; an empty DataFrame of the table without any."""
    schema = spark_schema(table)
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(spark_path(path) for path in paths))


def read_rollups(
    spark: SparkSession, root: Path, manifest: Manifest, table: Table, start: int | None = None, end: int | None = None
) -> DataFrame:
    """The rows of a rollup table from hour `start` to before hour `end`, hours since 1970; None means unbounded."""
    rows = read_files(spark, table, manifest.paths(root, table.name, start, end))
    if start is not None:
        rows = rows.where(F.col(table.time) >= F.timestamp_seconds(F.lit(start * HOUR)))
    if end is not None:
        rows = rows.where(F.col(table.time) < F.timestamp_seconds(F.lit(end * HOUR)))
    return rows


def spark_path(path: Path) -> str:
    """A local path for Spark: always the local file system, and never a glob pattern."""
    return f"file:{str(path.absolute()).translate(_GLOB)}"


def bounds(spark: SparkSession, **moments: int) -> DataFrame:
    """One broadcast row of times, given in seconds, stored in microseconds.

    Spark compiles constants into its generated code, so changing constants would recompile everything each time.
    """
    row = {name: pa.array([moment * 1_000_000], pa.int64()) for name, moment in moments.items()}
    return F.broadcast(spark.createDataFrame(pa.table(row)))


def within(rows: DataFrame, time: str, near: DataFrame) -> DataFrame:
    """Rows from `low` to before `high` of `near`, which was made by `bounds`."""
    at = F.unix_micros(time)
    return rows.join(near, (at >= F.col("low")) & (at < F.col("high"))).drop("low", "high")


def between(time: str, start: int, end: int) -> Column:
    """Rows from `start` to before `end`, seconds since 1970."""
    column = F.col(time)
    return (column >= F.timestamp_seconds(F.lit(start))) & (column < F.timestamp_seconds(F.lit(end)))

"""Table files as Spark DataFrames."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses
from pyspark.sql.types import StringType, StructField, StructType

from ackscope.arrow_files import dataset
from ackscope.manifest import Manifest
from ackscope.object_path import ObjectPath, Place, place
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import HOUR
from pipeline.schema import spark_schema

# Tasks that read objects: more of them wait for requests at the same time.
_TASKS_PER_CORE = 2

_GLOB = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})


def read_files(spark: SparkSession, table: Table, paths: Sequence[Place], path_column: str = "") -> DataFrame:
    """The rows of these files; an empty DataFrame of the table without any.

    `path_column` adds a column of that name with the path of the file of each row.
    """
    schema = _schema(table, path_column)
    if not paths:
        return spark.createDataFrame([], schema)
    objects = [path for path in paths if isinstance(path, ObjectPath)]
    if objects:
        return _read_objects(spark, table, objects, path_column)
    local = (spark_path(path) for path in paths if isinstance(path, Path))
    rows = spark.read.schema(spark_schema(table)).parquet(*local)
    return rows.withColumn(path_column, F.col("_metadata.file_path")) if path_column else rows


def _read_objects(spark: SparkSession, table: Table, paths: Sequence[ObjectPath], path_column: str) -> DataFrame:
    """The rows of these objects, read by the executors with our own library: Spark's would need Hadoop's connectors."""
    schema = _schema(table, path_column)
    tasks = min(len(paths), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    places = [number % tasks for number in range(len(paths))]
    named = pa.table({"task": pa.array(places, pa.int32()), "path": [*map(str, paths)]})
    spread = spark.createDataFrame(named).repartitionById(tasks, "task")
    return spread.mapInArrow(_ObjectReader(table, path_column), schema)


def _schema(table: Table, path_column: str) -> StructType:
    path = [StructField(path_column, StringType())] if path_column else []
    return StructType([*spark_schema(table), *path])


@dataclass(frozen=True, slots=True)
class _ObjectReader:
    """The function that an executor applies to the addresses of files."""

    table: Table
    path_column: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [text for batch in batches for text in batch["path"].to_pylist()]
        for name in names:
            for batch in dataset([place(name)], arrow_schema(self.table)).to_batches():
                paths = pa.repeat(name, batch.num_rows)
                yield batch.append_column(self.path_column, paths) if self.path_column else batch


def read_rollups(
    spark: SparkSession, root: Place, manifest: Manifest, table: Table, start: int | None = None, end: int | None = None
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

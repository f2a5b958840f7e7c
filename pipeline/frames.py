"""Table files as Spark DataFrames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
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


def read_files(
    spark: SparkSession, table: Table, paths: Sequence[Place], path_column: str = "", scope: Sequence[str] = ()
) -> DataFrame:
    """The rows of these files; an empty DataFrame of the table without any.

    `path_column` adds a column of that name with the path of the file of each row. The scope adds a column for each of
    its names, `cluster`, with the value of the folder `cluster=...` of the file.
    """
    schema = _schema(table, *([path_column] if path_column else []), *scope)
    if not paths:
        return spark.createDataFrame([], schema)
    objects = [path for path in paths if isinstance(path, ObjectPath)]
    if objects:
        return _read_objects(spark, table, objects, path_column, scope)
    local = [path for path in paths if isinstance(path, Path)]
    reader = spark.read.schema(_schema(table, *scope))
    if scope:
        reader = reader.option("basePath", f"file:{local[0].absolute().parents[2]}")
    rows = reader.parquet(*map(spark_path, local))
    if path_column:
        rows = rows.withColumn(path_column, F.col("_metadata.file_path"))
    # Spark reads the names of all folders below the base path as columns, also that of the date.
    return rows.select(*schema.names) if scope else rows


def _read_objects(
    spark: SparkSession, table: Table, paths: Sequence[ObjectPath], path_column: str, scope: Sequence[str]
) -> DataFrame:
    """The rows of these objects, read by the executors with our own library: Spark's would need Hadoop's connectors."""
    schema = _schema(table, *([path_column] if path_column else []), *scope)
    tasks = min(len(paths), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    places = [number % tasks for number in range(len(paths))]
    named = pa.table({"task": pa.array(places, pa.int32()), "path": [*map(str, paths)]})
    spread = spark.createDataFrame(named).repartitionById(tasks, "task")
    return spread.mapInArrow(_ObjectReader(table, path_column, tuple(scope)), schema)


def small_rows(
    table: Table, paths: Mapping[str, Sequence[Place]], first: int, last: int, scope: Sequence[str] = ()
) -> pa.Table:
    """The rows of some files of each cluster from `first` to before `last`, microseconds; read in the driver.

    The scope adds its column, with the name of the cluster.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    schema, found = arrow_schema(table), []
    low, high = (pa.scalar(moment, pa.int64()).cast(schema.field(table.time).type) for moment in (first, last))
    when = pc.field(table.time)
    for cluster, some in paths.items():
        # Not a filter of the dataset, which would believe the statistics in the footer.
        rows = dataset(some, schema).to_table().filter((when >= low) & (when < high))
        for name in scope:
            rows = rows.append_column(name, pa.repeat(cluster, rows.num_rows))
        found.append(rows)
    for name in scope:
        schema = schema.append(pa.field(name, pa.string()))
    return pa.concat_tables([schema.empty_table(), *found])


def distinct_texts(paths: Sequence[Place], column: str) -> list[str]:
    """The values of a column of text that has few, sorted; read in the driver, which decodes each once a file.

    Raises:
        OSError, pyarrow.ArrowException: a file cannot be read.
    """
    schema = pa.schema([(column, pa.dictionary(pa.int32(), pa.string()))])
    batches = dataset(paths, schema, dictionary_columns=[column]).to_batches()
    return sorted({text for batch in batches for text in pc.unique(batch[column]).to_pylist() if text is not None})


def _schema(table: Table, *texts: str) -> StructType:
    return StructType([*spark_schema(table), *(StructField(name, StringType()) for name in texts)])


@dataclass(frozen=True, slots=True)
class _ObjectReader:
    """The function that an executor applies to the addresses of files."""

    table: Table
    path_column: str
    scope: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [text for batch in batches for text in batch["path"].to_pylist()]
        for name in names:
            values = {self.path_column: name} if self.path_column else {}
            values |= {column: _folder_value(name, column) for column in self.scope}
            for batch in dataset([place(name)], arrow_schema(self.table)).to_batches():
                for column, value in values.items():
                    batch = batch.append_column(column, pa.repeat(value, batch.num_rows))  # noqa: PLW2901
                yield batch


def _folder_value(path: str, column: str) -> str:
    """The value of a folder such as `cluster=shop` in a path."""
    return unquote(next(part for part in path.split("/") if part.startswith(f"{column}=")).partition("=")[2])


def read_rollups(
    spark: SparkSession,
    root: Place,
    manifest: Manifest,
    table: Table,
    start: int | None = None,
    end: int | None = None,
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

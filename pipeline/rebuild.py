"""Rebuild the rollups of some hours from their landing rows: whole, and the same however often it is done."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.errors import DataError
from ackscope.tables import Table
from pipeline.hours import HOUR, runs
from pipeline.schema import arrow_schema, spark_schema
from pipeline.session import SPARK_ERRORS, cause
from pipeline.storage.footer import Contents
from pipeline.storage.landing import Landing, Touched
from pipeline.storage.rollups import Rollups
from pipeline.transforms import TRANSFORMS, Transform

ROWS_AT_ONCE = 4_000_000
"""Landing rows of one Spark job: its result is collected here, and must fit beside a small heap."""

_GLOB = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})


class StoppedError(Exception):
    """The user asked to stop in the middle of a rebuild; what was not rebuilt stays to be done."""


def rebuild(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    touched: Touched,
    near: Touched,
    go_on: Callable[[], bool] = lambda: True,
) -> int:
    """Write anew every rollup file that depends on landing rows of the tables, clusters and hours `touched`.

    Where a rollup looks beyond its hour, the hours to which these rows are `near` are rebuilt, too.

    The result depends on the landing rows alone. Landing is listed, read and rolled up as the only writer.

    Returns:
        How many files were replaced.

    Raises:
        DataError: Spark failed for a reason that lies in no landing file, or a file cannot be written.
        StoppedError: `go_on` said no.
    """
    replaced = 0
    for transform in TRANSFORMS:
        for cluster in sorted({cluster for table, cluster in touched if table in transform.sources}):
            hours = _hours(touched, transform, cluster)
            if transform.memory:
                # One without landing rows keeps the rollup that it may have.
                beside = _hours(near, transform, cluster) - hours
                hours |= {hour for hour in beside if _files(landing, transform.source, cluster, [hour])}
            for chunk in _chunks(landing, transform, cluster, hours):
                with rollups.only_writer():
                    if not go_on():
                        raise StoppedError
                    rows = _compute(spark, landing, transform, cluster, chunk, go_on)
                    replaced += rollups.write(transform.rollup, cluster, chunk, rows)
    return replaced


def _chunks(landing: Landing, transform: Transform, cluster: str, hours: set[int]) -> Iterator[list[int]]:
    """Hours to rebuild, in portions that lie together and are not too many rows."""
    for run in runs(hours):
        rows = sum(held.rows for held in _files(landing, transform.source, cluster, run).values())
        step = max(1, ROWS_AT_ONCE * len(run) // max(rows, 1))
        for start in range(0, len(run), step):
            yield run[start : start + step]


def _hours(touched: Touched, transform: Transform, cluster: str) -> set[int]:
    return set[int]().union(*(touched.get((table, cluster), ()) for table in transform.sources))


def _files(landing: Landing, table: Table, cluster: str, hours: list[int], memory: int = 0) -> dict[Path, Contents]:
    return landing.covering(table, cluster, hours[0] * HOUR - memory, (hours[-1] + 1) * HOUR + memory)


def _compute(
    spark: SparkSession,
    landing: Landing,
    transform: Transform,
    cluster: str,
    hours: list[int],
    go_on: Callable[[], bool],
) -> pa.Table:
    """The rollup rows of these hours, which lie together; damaged files are set apart on the way."""
    start, end = hours[0] * HOUR, (hours[-1] + 1) * HOUR
    while paths := _paths(landing, transform, cluster, hours):
        try:
            frames = [
                _read(spark, table, paths[table]).where(
                    between(table.time, start - transform.memory, end + transform.memory)
                )
                for table in transform.sources
            ]
            return transform.build(*frames).where(between(transform.rollup.time, start, end)).toArrow()
        except SPARK_ERRORS as error:
            if not go_on():
                raise StoppedError from None
            if not sum(landing.doubt(table, paths[table]) for table in transform.sources):
                raise DataError(
                    f"{transform.rollup.name} of cluster {cluster} could not be computed from "
                    f"{landing.root / transform.source.name}: {cause(error)}"
                ) from None
    return arrow_schema(transform.rollup).empty_table()


def _paths(landing: Landing, transform: Transform, cluster: str, hours: list[int]) -> dict[Table, list[Path]]:
    """The files of each table that these hours depend on; nothing where the source has none."""
    found = {table: list(_files(landing, table, cluster, hours, transform.memory)) for table in transform.sources}
    return found if found[transform.source] else {}


def _read(spark: SparkSession, table: Table, paths: list[Path]) -> DataFrame:
    schema = spark_schema(table)
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(spark_path(path) for path in paths))


def spark_path(path: Path) -> str:
    """A local path as Spark takes it: never another file system's, and never a pattern."""
    return f"file:{str(path.absolute()).translate(_GLOB)}"


def between(time: str, start: int, end: int) -> Column:
    """Rows from `start` to before `end`, in seconds since 1970."""
    column = F.col(time)
    return (column >= F.timestamp_seconds(F.lit(start))) & (column < F.timestamp_seconds(F.lit(end)))

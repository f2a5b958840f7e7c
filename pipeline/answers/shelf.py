"""The rollups of one cluster as the answers read them: large tables as Spark frames, small ones as rows at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from ackscope import manifest
from ackscope.cli import nearest
from ackscope.errors import DataError, UsageError
from ackscope.tables import Table
from pipeline.frames import between, rolled_up
from pipeline.hours import HOUR
from pipeline.schema import arrow_schema


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is there of one cluster.

    Attributes:
        files: the catalog as it was when the question was asked; its files stay for `catalog.GRACE` seconds.
    """

    root: Path
    cluster: str
    files: manifest.Manifest

    @classmethod
    def of(cls, root: Path, cluster: str) -> "Shelf":
        """The rollups of a cluster as they are now.

        Raises:
            DataError: its catalog cannot be read.
        """
        return cls(root, cluster, manifest.read(root, cluster))

    def frame(self, spark: SparkSession, table: Table, start: float, end: float) -> DataFrame:
        """The rows of a table of the hours that lie from `start` to `end`, both seconds since 1970.

        The hour of `start` is left out unless it is whole; that of `end` is in, as far as it has come.
        """
        return rolled_up(spark, self.root, self.files, table, -int(-start // HOUR), int(-(-end // HOUR)))

    def minutes(self, spark: SparkSession, table: Table, start: float, end: float) -> DataFrame:
        """The rows of a table of minutes that lie whole from `start` to `end`, both seconds since 1970."""
        first, last = -int(-start // 60) * 60, int(end // 60) * 60
        hours = rolled_up(spark, self.root, self.files, table, first // HOUR, -(-last // HOUR))
        return hours.where(between(table.time, first, last))

    def rows(self, table: Table, start: float, end: float, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a small table with their time from `start` to `end`; read by Arrow, without Spark.

        Raises:
            DataError: a file cannot be read.
        """
        schema = arrow_schema(table)
        if columns:
            schema = pa.schema([schema.field(name) for name in dict.fromkeys((table.time, *columns))])
        bounds = [
            pa.scalar(round(at * 1_000_000), pa.int64()).cast(pa.timestamp("us", tz="UTC")) for at in (start, end)
        ]
        inside = (pc.field(table.time) >= bounds[0]) & (pc.field(table.time) <= bounds[1])

        def read(manifest: manifest.Manifest) -> pa.Table:
            paths = manifest.paths(self.root, table.name, int(start // HOUR), int(end // HOUR) + 1)
            if not paths:
                return schema.empty_table()
            # A column that an older file does not have is null.
            return ds.dataset([str(path) for path in paths], schema=schema).to_table(filter=inside)

        rows: list[dict[str, Any]] = _twice(read, self).to_pylist()
        return rows

    def has(self, table: Table) -> bool:
        """Whether there is any file of a table."""
        return bool(self.files.files_for(table.name))


def require_cluster(root: Path, cluster: str | None) -> str:
    """The cluster that was asked for, or the only one.

    Raises:
        DataError: there are no rollups here.
        UsageError: it is not known, or there are several to choose from.
    """
    known = list(manifest.clusters(root))
    if not known:
        raise DataError(
            f"--rollups {root}: no rollups here; `ackscope pipeline run --landing DIR --rollups {root}` makes them"
        )
    names = ", ".join(known)
    if cluster is None:
        if len(known) > 1:
            raise UsageError(f"--cluster is missing, there are several; give one of: {names}")
        return known[0]
    if cluster not in known:
        raise UsageError(f"--cluster {cluster!r} has no rollups in {root}{nearest(cluster, known)}; known: {names}")
    return cluster


def _twice(read: Callable[[manifest.Manifest], pa.Table], shelf: Shelf) -> pa.Table:
    """Read; where a file is gone, by a new catalog once more."""
    try:
        return read(shelf.files)
    except FileNotFoundError:
        try:
            return read(manifest.read(shelf.root, shelf.cluster))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"a rollup file cannot be read: {str(error).splitlines()[0]}") from None
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"a rollup file cannot be read: {str(error).splitlines()[0]}; `ackscope pipeline backfill` makes it again"
        ) from None

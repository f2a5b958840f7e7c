"""Read the rollups of one cluster: large tables as Spark DataFrames, small ones as rows, without Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ackscope.arrow_files import dataset
from ackscope.cli import nearest
from ackscope.errors import DataError, UsageError
from ackscope.manifest import Manifest, clusters
from ackscope.manifest import read as read_manifest
from ackscope.object_path import Place
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.frames import between, read_rollups
from pipeline.hours import HOUR


@dataclass(frozen=True, slots=True)
class RollupReader:
    """The rollups of one cluster.

    Attributes:
        manifest: the manifest when the query began; its files stay for `manifest.GRACE_SECONDS`.
    """

    root: Place
    cluster: str
    manifest: Manifest

    @classmethod
    def of(cls, root: Place, cluster: str) -> "RollupReader":
        """The current rollups of a cluster.

        Raises:
            DataError: its manifest cannot be read.
        """
        return cls(root, cluster, read_manifest(root, cluster))

    def frame(self, spark: SparkSession, table: Table, start: float, end: float) -> DataFrame:
        """The rows of a table for the hours from `start` to `end`, both seconds since 1970.

        The hour of `start` is included only if the range covers all of it, the hour of `end` as far as it has data.
        """
        return read_rollups(spark, self.root, self.manifest, table, -int(-start // HOUR), int(-(-end // HOUR)))

    def minutes(self, spark: SparkSession, table: Table, start: float, end: float) -> DataFrame:
        """The rows of a table of minutes that lie completely from `start` to `end`, both seconds since 1970."""
        first, last = -int(-start // 60) * 60, int(end // 60) * 60
        hours = read_rollups(spark, self.root, self.manifest, table, first // HOUR, -(-last // HOUR))
        return hours.where(between(table.time, first, last))

    def rows(self, table: Table, start: float, end: float, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a small table with their time from `start` to `end`.

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

        def read(manifest: Manifest) -> pa.Table:
            paths = manifest.paths(self.root, table.name, int(start // HOUR), int(end // HOUR) + 1)
            if not paths:
                return schema.empty_table()
            # Columns that an older file does not have are null.
            return dataset(paths, schema).to_table(filter=inside)

        rows: list[dict[str, Any]] = _read_twice(read, self).to_pylist()
        return rows

    def has(self, table: Table) -> bool:
        """Whether a table has any file."""
        return bool(self.manifest.files_for(table.name))


def require_cluster(root: Place, cluster: str | None) -> str:
    """The requested cluster, or the only one.

    Raises:
        DataError: there are no rollups here.
        UsageError: it is unknown, or there are several to choose from.
    """
    known = list(clusters(root))
    if not known:
        raise DataError(
            f"--rollups {root}: no rollups here; run `ackscope pipeline run --landing DIR --rollups {root}` first"
        )
    names = ", ".join(known)
    if cluster is None:
        if len(known) > 1:
            raise UsageError(f"several clusters, choose one with --cluster: {names}")
        return known[0]
    if cluster not in known:
        raise UsageError(f"--cluster {cluster!r} has no rollups in {root}{nearest(cluster, known)}; there are: {names}")
    return cluster


def _read_twice(read: Callable[[Manifest], pa.Table], reader: RollupReader) -> pa.Table:
    """Read; if a file was vacuumed meanwhile, read once more with the current manifest."""
    try:
        return read(reader.manifest)
    except FileNotFoundError:
        try:
            return read(read_manifest(reader.root, reader.cluster))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"a rollup file cannot be read: {str(error).splitlines()[0]}") from None
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"a rollup file cannot be read: {str(error).splitlines()[0]}; `ackscope pipeline backfill` rebuilds it"
        ) from None

"""One Spark for the whole run, started by the first test that asks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope import manifest
from ackscope.tables import MINUTES, POLL_SAMPLES, Table
from ackscope.tables.arrow import arrow_schema
from tests.spark.moments import at


@pytest.fixture(scope="session")
def spark() -> Iterator:
    """A session with the settings of the product: its Java takes ten seconds to start."""
    from pipeline.session import spark_session

    with spark_session(long_lived=True) as session:
        yield session


@pytest.fixture
def session(spark) -> Callable:
    """What the jobs take for Spark: the session that is there already."""
    return lambda: nullcontext(spark)


@pytest.fixture
def rolled() -> Callable[[Path, Table], list[dict]]:
    """Read back the rows of a rollup table that count, all clusters and hours, in order."""

    def read(rollups: Path, table: Table) -> list[dict]:
        return [
            row
            for cluster in manifest.clusters(rollups)
            for path in manifest.read(rollups, cluster).paths(rollups, table.name)
            for row in pq.ParquetFile(path).read().to_pylist()
        ]

    return read


@pytest.fixture
def fingerprint() -> Callable[..., dict[str, str]]:
    """The digest of the rows of every current hour, for the tables of minutes or the given ones."""

    def digests(rollups: Path, tables: Iterable[str] = MINUTES) -> dict[str, str]:
        return {
            f"{cluster}/{table}/{start}": text
            for cluster in manifest.clusters(rollups)
            for table in tables
            for it in manifest.read(rollups, cluster).files_for(table)
            for start, text in it.parts.items()
        }

    return digests


def built(spark, transform, rows: Mapping[Table, Sequence[dict]]):
    """What a transform makes of rows of its tables."""
    source, *small = (
        pa.Table.from_pylist(list(rows[table]), schema=arrow_schema(table)) for table in transform.sources
    )
    values = [sorted({*source[transform.coded].to_pylist()} - {None})] if transform.coded else []
    return transform.build(spark.createDataFrame(source), *small, *values)


@pytest.fixture
def minutes(spark) -> Callable[..., dict[int, dict]]:
    """Roll up rows of one landing table with polls: one object's rows by the minute after noon."""
    from pipeline.transforms import TRANSFORMS

    def make(table: Table, samples: list[dict], polls: Sequence[dict] = ()) -> dict[int, dict]:
        transform = next(it for it in TRANSFORMS if it.source == table)
        given = {POLL_SAMPLES: polls, table: samples}
        rows = built(spark, transform, given).toArrow().sort_by("minute").to_pylist()
        return {round((row["minute"] - at(0)).total_seconds()) // 60: row for row in rows}

    return make

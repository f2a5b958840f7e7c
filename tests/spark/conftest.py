"""One Spark for the whole run, started by the first test that asks."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ackscope.tables import Table


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
    """Read back the rows of a rollup table, all clusters and hours, in order."""

    def read(rollups: Path, table: Table) -> list[dict]:
        return [
            row
            for path in sorted((rollups / table.name).glob("cluster=*/date=*/hour=*.parquet"))
            for row in pq.ParquetFile(path).read().to_pylist()
        ]

    return read


@pytest.fixture
def fingerprint() -> Callable[[Path], dict[str, str]]:
    """Every rollup file by its path and a hash of its bytes."""

    def hashes(rollups: Path) -> dict[str, str]:
        return {
            str(path.relative_to(rollups)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(rollups.glob("*/cluster=*/date=*/*"))
        }

    return hashes

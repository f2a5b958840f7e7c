import fcntl
import subprocess
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.errors import DataError
from ackscope.tables import BURSTS_1M, ROLLUPS
from pipeline.hours import first_hour
from pipeline.schema import arrow_schema
from pipeline.storage.rollups import Rollups

NINE = first_hour(date(2026, 3, 1)) + 9


def rows(*minutes):
    """One row a minute after nine o'clock."""
    text = dict.fromkeys(("probe", "stream", "queue_type", "vhost", "node"), "x")
    counts = dict.fromkeys(("bursts", "frames", "multiple_frames", "messages", "messages_max", "interval_count"), 1)
    return pa.Table.from_pylist(
        [
            text
            | counts
            | {
                "minute": datetime(2026, 3, 1, 9 + minute // 60, minute % 60, tzinfo=UTC),
                "interval_sum": 0.0,
                "interval_max": None,
            }
            for minute in minutes
        ],
        schema=arrow_schema(BURSTS_1M),
    )


def test_writes_a_file_an_hour(tmp_path):
    """Rows go to the file of their hour, in the order of the key, with the schema of the contract."""
    rollups = Rollups(tmp_path)

    files = rollups.write(BURSTS_1M, "shop", [NINE, NINE + 1], rows(61, 5, 60, 0))
    folder = tmp_path / "bursts_1m" / "cluster=shop" / "date=2026-03-01"

    assert 2 == files
    assert ["hour=09.parquet", "hour=10.parquet"] == sorted(path.name for path in folder.iterdir())
    assert rows(0, 5).equals(pq.ParquetFile(folder / "hour=09.parquet").read())
    assert arrow_schema(BURSTS_1M).equals(pq.ParquetFile(folder / "hour=10.parquet").schema_arrow)


def test_the_order_of_rows_leaves_no_trace(tmp_path):
    """The same rows in another order and in other pieces give the same bytes."""
    rollups, path = Rollups(tmp_path), Rollups(tmp_path).path(BURSTS_1M, "shop", NINE)
    rollups.write(BURSTS_1M, "shop", [NINE], rows(*range(60)))
    before = path.read_bytes()

    rollups.write(BURSTS_1M, "shop", [NINE], pa.concat_tables([rows(*range(59, 29, -1)), rows(*range(30))]))

    assert before == path.read_bytes()


def test_an_hour_without_rows_has_no_file(tmp_path):
    """Where nothing is left of an hour, its file goes; other hours stay."""
    rollups = Rollups(tmp_path)
    rollups.write(BURSTS_1M, "shop", [NINE, NINE + 1], rows(0, 60))

    assert 0 == rollups.write(BURSTS_1M, "shop", [NINE], rows())
    assert not rollups.path(BURSTS_1M, "shop", NINE).exists()
    assert rollups.path(BURSTS_1M, "shop", NINE + 1).exists()


def test_counts_what_stands(tmp_path):
    """Rows are counted as they stand in the files, also after a file was replaced."""
    rollups = Rollups(tmp_path)
    rollups.write(BURSTS_1M, "shop", [NINE], rows(0, 1, 2))
    before = rollups.counts()
    rollups.write(BURSTS_1M, "shop", [NINE], rows(0))

    assert dict.fromkeys(ROLLUPS, 0) | {"bursts_1m": 3} == before
    assert 1 == rollups.counts()["bursts_1m"]


def test_sweeps_what_a_killed_writer_left(tmp_path):
    """Half-written files go, whole ones stay."""
    rollups = Rollups(tmp_path)
    rollups.write(BURSTS_1M, "shop", [NINE], rows(0))
    path = rollups.path(BURSTS_1M, "shop", NINE)
    half = path.with_name(".hour=09.parquet.tmp")
    half.write_bytes(b"half")

    rollups.sweep()

    assert path.exists()
    assert not half.exists()


HOLD = """
import sys
from pathlib import Path
from pipeline.storage.rollups import Rollups
with Rollups(Path(sys.argv[1])).only_writer():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_writer_at_a_time(tmp_path):
    """While another process rebuilds, the lock is taken; when it is killed, the lock is free."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        try:
            assert b"held\n" == other.stdout.readline()

            with (tmp_path / "_lock").open() as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            other.kill()
    with Rollups(tmp_path).only_writer(), (tmp_path / "_lock").open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_refuses_a_folder_that_cannot_be_made(tmp_path):
    """A rollup path below a file is refused in one line."""
    (tmp_path / "file").write_text("x")

    with pytest.raises(DataError, match=r"--rollups .*/file/rollups: cannot be written \(Not a directory\)"):
        Rollups(tmp_path / "file" / "rollups")

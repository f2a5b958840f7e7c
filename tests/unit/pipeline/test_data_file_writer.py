"""Data files are written whole or not at all, by driver and executor, and pickled plans write the same."""

import pickle
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ackscope.errors import DataError
from ackscope.tables import BURSTS_1M
from pipeline.storage.data_file_writer import hour_ranges, write_file
from pipeline.storage.rollups import Rollups
from pipeline.storage.store import LocalStore
from tests.unit.pipeline.test_rollups import DAY, NINE, put, rows, stands


def plans(root, *ranges):
    """Plans of a new transaction."""
    return Rollups(root).transaction("shop").plan(BURSTS_1M, ranges)


def test_a_plan_may_travel(tmp_path):
    """What an executor makes of a pickled plan and store is what the driver makes of its own."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 30, 59, 60, 90))
    start, end = NINE * 3600 + 30 * 60, NINE * 3600 + 61 * 60
    one, other = plans(tmp_path, (start, end))
    store, sent = pickle.loads(pickle.dumps((LocalStore(tmp_path), one)))
    written = [write_file(store, sent, rows(31)), write_file(LocalStore(tmp_path), other, rows())]

    assert (NINE, NINE + 1) == (one.slot.start, other.slot.start)
    transaction = Rollups(tmp_path).transaction("shop")

    assert all(transaction.stage(plan, it) for plan, it in zip((one, other), written, strict=True))
    expected = transaction.commit()

    assert rows(0, 31, 90).equals(stands(tmp_path))

    put(tmp_path / "again", [NINE, NINE + 1], rows(0, 31, 90))

    assert [it.path for it in expected.files_for("bursts_1m")] == [
        it.path for it in Rollups(tmp_path / "again").manifest("shop").files_for("bursts_1m")
    ]


def test_hours_are_ranges():
    """Consecutive hours are one range."""
    assert [(3600, 10_800), (18_000, 21_600)] == hour_ranges([1, 2, 5])
    assert [] == hour_ranges([])


def test_a_plan_is_stale_once_its_slot_changed(tmp_path):
    """Written without the lock: a commit in between, a compaction too, makes the plan useless."""
    put(tmp_path, [NINE, NINE + 1], rows(0, 60))
    (plan,) = plans(tmp_path, *hour_ranges([NINE]))

    assert Rollups(tmp_path).transaction("shop").is_current(plan)

    transaction = Rollups(tmp_path).transaction("shop")
    transaction.compact_day(BURSTS_1M, DAY)
    transaction.commit()

    assert not Rollups(tmp_path).transaction("shop").is_current(plan)


def test_a_file_that_is_gone_is_not_staged(tmp_path):
    """Removed between writing and committing: nothing changes."""
    before = put(tmp_path, [NINE], rows(0))
    (plan,) = plans(tmp_path, *hour_ranges([NINE]))
    written = write_file(LocalStore(tmp_path), plan, rows(1))
    (tmp_path / written.path).unlink()
    transaction = Rollups(tmp_path).transaction("shop")

    assert not transaction.stage(plan, written)
    assert before == transaction.commit()


def test_a_folder_in_the_way_is_one_line(tmp_path):
    """Nothing of the attempt is left."""
    (plan,) = plans(tmp_path, *hour_ranges([NINE]))
    (tmp_path / "bursts_1m").write_bytes(b"")

    with pytest.raises(DataError, match=r"cannot be written \(Not a directory\); check its disk and owner$"):
        write_file(LocalStore(tmp_path), plan, rows(0))


WRITE = """
import sys
from pathlib import Path
from pipeline.storage.data_file_writer import write_file
from pipeline.storage.store import LocalStore
from tests.unit.pipeline.test_data_file_writer import plans, rows
from tests.unit.pipeline.test_rollups import NINE
root, where = Path(sys.argv[1]), sys.argv[2]
def held(*words):
    print("held", flush=True)
    sys.stdin.read()
if where == "fsync":
    import pipeline.storage.durable as durable
    durable.os.fsync = held
else:
    Path.replace = held
(plan,) = plans(root, (NINE * 3600, NINE * 3600 + 3600))
write_file(LocalStore(root), plan, rows(1, 2))
"""


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_writer_that_is_killed_leaves_nothing_that_counts(tmp_path, where):
    """Before its file is durable, or before it has its name; the next attempt writes it."""
    before = put(tmp_path, [NINE], rows(0))
    words = [sys.executable, "-c", WRITE, str(tmp_path), where]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert b"held\n" == other.stdout.readline()
        other.send_signal(signal.SIGKILL)
    names = [path.name for path in (tmp_path / before.files_for("bursts_1m")[0].path).parent.iterdir()]

    assert 1 == sum(name.endswith(".tmp") for name in names)
    assert 1 == sum(name.endswith(".parquet") for name in names)
    assert rows(0).equals(stands(tmp_path))

    (plan,) = plans(tmp_path, *hour_ranges([NINE]))
    written = write_file(LocalStore(tmp_path), plan, rows(1, 2))

    assert rows(1, 2).equals(pq.ParquetFile(tmp_path / written.path).read())

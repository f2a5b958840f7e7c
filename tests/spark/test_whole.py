"""What a reader sees while files land all the time: each landing file with all of its rows, or with none."""

import threading

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.tables import OUTCOMES_1M, POLL_SAMPLES, POLLS_1M, PROBE_MESSAGES, PROBE_STEPS, STEPS_1M
from pipeline import jobs, streaming
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups
from tests.spark.landing_files import message, poll, step, write
from tests.spark.test_jobs import run, stream_until

pytestmark = pytest.mark.spark

ROWS = 5
SETS, AT_ONCE = 12, 4
COUNTED = {OUTCOMES_1M: "messages", POLLS_1M: "reads", STEPS_1M: "attempts"}


def land(root, number):
    """A file of each of three tables; it has some minutes in common with the one before, and some not."""
    moments = [55 * 60.0 + 60 * (2 * number + row) + number for row in range(ROWS)]
    write(root, PROBE_MESSAGES, [message(number * ROWS + row, it) for row, it in enumerate(moments)], f"m{number}")
    write(root, POLL_SAMPLES, [poll(it) for it in moments], f"p{number}")
    write(root, PROBE_STEPS, [step(it) for it in moments], f"s{number}")


def sums(rollups):
    """Landing rows that the tables of minutes count, by table."""
    known = manifest.read(rollups, "shop")
    return {
        table.name: sum(
            pc.sum(pq.ParquetFile(path).read()[column]).as_py() for path in known.paths(rollups, table.name)
        )
        for table, column in COUNTED.items()
    }


@pytest.fixture
def landing_all_the_time(monkeypatch, tmp_path):
    """Sets of files land before and after a job looks at landing folders, and while it waits for the lock.

    It returns what the manifest listed after each commit.
    """
    found_rows, landed = [], iter(range(1, SETS))
    left = [AT_ONCE]

    def another():
        if threading.current_thread().name != "maintenance" and left[0] and (number := next(landed, None)) is not None:
            left[0] -= 1
            land(tmp_path / "landing", number)

    class Busy(Landing):
        def files(self, partition):
            another()
            found = super().files(partition)
            another()
            return found

    class Watched(Rollups):
        def transaction(self, cluster):
            another()
            transaction = super().transaction(cluster)
            commit = transaction.commit

            def watched():
                committed = commit()
                found_rows.append(sums(self.root))
                left[0] = AT_ONCE
                return committed

            monkeypatch.setattr(transaction, "commit", watched)
            return transaction

    monkeypatch.setattr(jobs, "Landing", Busy)
    monkeypatch.setattr(streaming, "Landing", Busy)
    monkeypatch.setattr(jobs, "Rollups", Watched)
    return found_rows


def test_a_stream_shows_whole_files(session, fingerprint, landing_all_the_time, tmp_path):
    """Files that land at any moment of a batch are visible as a whole in every state; the end equals one `run`."""
    (tmp_path / "streamed").mkdir()
    land(tmp_path / "landing", 0)
    stream_until(tmp_path, session, lambda status: status["landing_rows"] >= 3 * ROWS * SETS)

    halves = [found_rows for found_rows in landing_all_the_time if any(total % ROWS for total in found_rows.values())]

    assert [] == halves
    assert 3 <= len(landing_all_the_time) < SETS
    assert dict.fromkeys((table.name for table in COUNTED), ROWS * SETS) == landing_all_the_time[-1]

    run(tmp_path, session)

    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def test_files_that_land_during_a_run_are_whole(session, landing_all_the_time, monkeypatch, tmp_path):
    """Each chunk of hours is a commit: what came since the first look is part of the first that reads of it, whole."""
    monkeypatch.setattr("pipeline.executor_writes.MAX_LANDING_ROWS", ROWS)
    land(tmp_path / "landing", 0)

    jobs.run(tmp_path / "landing", tmp_path / "batch", session, SystemClock(), minutes_only=True)

    last = landing_all_the_time[-1]

    assert 1 < len(landing_all_the_time)
    assert [] == [total for total in last.values() if total % ROWS]
    assert ROWS * (1 + AT_ONCE) <= min(last.values())

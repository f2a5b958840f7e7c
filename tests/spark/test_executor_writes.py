"""Files that executors write are the files that the driver writes: names, digests and rows."""

import random

import pyarrow.parquet as pq
import pytest

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.errors import DataError
from ackscope.tables import (
    LATENCY_1M,
    MINUTES,
    POLL_SAMPLES,
    PROBE_MESSAGES,
    QUEUE_SAMPLES,
    QUEUES_1M,
)
from pipeline import downsample, executor_writes, jobs
from pipeline.side_by_side import side_by_side
from pipeline.storage.rollups import Rollups
from pipeline.storage.store import LocalStore
from tests.spark.landing_files import message, random_messages, random_polls, random_samples, write
from tests.spark.test_jobs import stream_until

pytestmark = pytest.mark.spark

CLUSTERS = ("shop", "bank")


@pytest.fixture
def executors_write(monkeypatch):
    """Let executors write everything, however few rows there are; how many files they were asked for."""
    asked = []
    write_files, write_each = executor_writes.write_files, executor_writes.write_each
    by_driver = []

    def counted(frame, plans, store, scope=()):
        asked.extend(plans)
        return write_files(frame, plans, store, scope)

    def in_driver(spark, files, *rest):
        by_driver.extend(files)
        return side_by_side(spark, files, *rest)

    def counted_each(spark, files, go_on):
        before = len(by_driver)
        written = write_each(spark, files, go_on)
        if len(by_driver) == before:
            asked.extend(it.plan for it in files)
        return written

    monkeypatch.setattr(executor_writes, "COLLECTED_ROWS", -1)
    monkeypatch.setattr(executor_writes, "side_by_side", in_driver)
    monkeypatch.setattr("pipeline.rebuild.write_files", counted)
    monkeypatch.setattr("pipeline.downsample.write_each", counted_each)
    return asked


def land(root, part, first, cluster="shop", seed=1):
    """An hour of messages, samples and polls from second `first` on."""
    dice = random.Random(f"{seed} {part} {cluster}")
    rows = {
        PROBE_MESSAGES: random_messages(dice, 100, first, 3600),
        QUEUE_SAMPLES: random_samples(dice, 3, first, 3600),
        POLL_SAMPLES: random_polls(dice, first, 3600),
    }
    for table, some in rows.items():
        write(root, table, some, f"{part}-{table.name}", cluster=cluster)


def files(root):
    """The whole content of the manifests, without times."""
    return {
        cluster: {name: list(found) for name, found in manifest.read(root, cluster).tables.items() if found}
        for cluster in manifest.clusters(root)
    }


def run(root, spark, session, rollups):
    """Roll up `root/landing` to minutes, hours and days."""
    jobs.run(root / "landing", root / rollups, session, SystemClock(), minutes_only=True)
    downsample.refresh(spark, Rollups(root / rollups), manifest.clusters(root / rollups))


def test_executors_write_what_the_driver_writes(spark, session, executors_write, monkeypatch, tmp_path):
    """All tables of two clusters, side by side: the same files, of minutes, hours and days."""
    for cluster in CLUSTERS:
        for part in range(2):
            land(tmp_path / "landing", part, part * 3600, cluster)
    run(tmp_path, spark, session, "executors")
    written = {plan.table.name for plan in executors_write}
    monkeypatch.setattr(executor_writes, "COLLECTED_ROWS", 1e9)
    asked = len(executors_write)
    run(tmp_path, spark, session, "driver")

    assert asked == len(executors_write)
    assert {QUEUES_1M.name, LATENCY_1M.name, "queues_1h", "queues_1d"} <= written
    assert set(CLUSTERS) == set(files(tmp_path / "executors"))
    assert files(tmp_path / "driver") == files(tmp_path / "executors")
    for found in files(tmp_path / "driver").values():
        for it in (it for many in found.values() for it in many):
            one, other = (pq.ParquetFile(tmp_path / name / it.path).read() for name in ("driver", "executors"))

            assert one.equals(other)


def test_late_rows_are_merged_where_they_are_written(session, executors_write, monkeypatch, fingerprint, tmp_path):
    """A stream replaces some minutes of an hour, and an hour of a compacted date: the rest of the file stays."""
    land(tmp_path / "landing", 0, 0)
    land(tmp_path / "landing", 1, 3600)
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    rollups = Rollups(tmp_path / "streamed")
    with rollups.writer_lock("shop"):
        transaction = rollups.transaction("shop")
        for table in MINUTES.values():
            for it in transaction.manifest.files_for(table.name):
                transaction.compact_day(
                    table, pq.ParquetFile(tmp_path / "streamed" / it.path).read()[table.time][0].as_py().date()
                )
        transaction.commit()
    write(tmp_path / "landing", PROBE_MESSAGES, [message(9000, 1800)], "late")
    stream_until(tmp_path, session, lambda status: status["batches"] >= 1)
    monkeypatch.setattr(executor_writes, "COLLECTED_ROWS", 1e9)
    jobs.run(tmp_path / "landing", tmp_path / "batch", session, SystemClock(), minutes_only=True)

    assert executors_write
    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "streamed")


def test_a_disk_that_refuses_is_one_line(spark, session, executors_write, monkeypatch, tmp_path):
    """What an executor cannot write fails the job with its line, and nothing of the hour counts."""
    land(tmp_path / "landing", 0, 0)
    (tmp_path / "rollups").mkdir()
    (tmp_path / "rollups" / "latency_1m").write_text("in the way")

    with pytest.raises(DataError, match=r"latency_1m/.*: cannot be written \(Not a directory\); check its disk"):
        run(tmp_path, spark, session, "rollups")

    assert () == manifest.clusters(tmp_path / "rollups")


def test_a_file_that_vanished_does_not_count(tmp_path):
    """A file is checked when it is staged: it may have been removed since an executor wrote it."""
    assert LocalStore(tmp_path).renew("queues_1m/cluster=shop/date=2026-03-01/hour=00.0123456789abcdef.parquet") is None

"""Batch jobs over a bucket give the same rollups as over folders, and readers read them there."""

import random
from collections.abc import Iterator
from uuid import uuid4

import pytest

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.object_path import ObjectPath
from ackscope.tables import POLL_SAMPLES, PROBE_MESSAGES, QUEUE_SAMPLES
from pipeline import jobs
from tests.buckets import BASE, environment, object_server, upload
from tests.spark import landing_files
from tests.spark.moments import at

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def bucket(spark) -> Iterator[ObjectPath]:
    """A prefix on a real server. Spark was started before it, so its workers get the environment."""
    known = dict(spark.sparkContext.environment)
    with object_server() as values, environment(values):
        spark.sparkContext.environment.update(values)
        yield ObjectPath(BASE, uuid4().hex)
        spark.sparkContext.environment.clear()
        spark.sparkContext.environment.update(known)


@pytest.fixture
def landing(tmp_path, bucket):
    """The same landing files in a folder and in the bucket, one of them damaged."""
    dice, folder = random.Random(3), tmp_path / "landing"
    for hour in range(2):
        first = hour * 3600.0
        messages = landing_files.random_messages(dice, 200, first, 900.0)
        landing_files.write(folder, PROBE_MESSAGES, messages, f"m{hour}")
        samples = [landing_files.sample(first + 60 * it, messages_ready=it) for it in range(10)]
        landing_files.write(folder, QUEUE_SAMPLES, samples, f"q{hour}")
        landing_files.write(folder, POLL_SAMPLES, [landing_files.poll(first + 60 * it) for it in range(10)], f"p{hour}")
    broken = folder / QUEUE_SAMPLES.name / "cluster=shop" / f"date={at(0).date().isoformat()}" / "broken.parquet"
    broken.write_bytes(b"not a file")
    upload(folder, bucket / "landing")
    return folder


@pytest.mark.timeout(1500)
def test_a_run_over_a_bucket_equals_one_over_folders(landing, bucket, tmp_path, session, fingerprint, monkeypatch):
    """Hour by hour, whether the driver or the executors write; analyses change none of it, and write answers."""
    jobs.run(landing, tmp_path / "rollups", session, SystemClock(), minutes_only=True, delta=False)
    expected = fingerprint(tmp_path / "rollups")
    assert expected

    first = jobs.run(bucket / "landing", bucket / "rollups", session, SystemClock(), minutes_only=True, delta=False)

    assert expected == fingerprint(bucket / "rollups")
    assert 1 == first.quarantined
    assert (bucket / "landing" / "_quarantine").is_dir()
    monkeypatch.setattr("pipeline.executor_writes.COLLECTED_ROWS", -1)
    jobs.run(bucket / "landing", bucket / "executors", session, SystemClock(), minutes_only=True, delta=False)
    assert expected == fingerprint(bucket / "executors")
    monkeypatch.undo()
    before = manifest.read(bucket / "rollups", "shop")
    jobs.run(bucket / "landing", bucket / "rollups", session, SystemClock(), delta=False)
    after = manifest.read(bucket / "rollups", "shop")
    assert all(after.tables[name] == files for name, files in before.tables.items())
    assert (bucket / "rollups" / "_answers" / "shop.json").exists()

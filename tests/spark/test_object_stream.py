"""A stream over a bucket ends like one `run`, whatever happens to it or to the bucket."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from ackscope.clock import SystemClock
from ackscope.errors import AckscopeError
from ackscope.object_path import ObjectPath, ObjectStorageError
from lab.network_link import LinkState, NetworkLink
from pipeline import jobs
from pipeline.stop import Stop
from tests.buckets import BASE, ENDPOINT, environment, object_server, through, upload
from tests.spark.landing_files import write_random

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def link(spark, monkeypatch) -> Iterator[NetworkLink]:
    """A link to a real server, which all clients use; they give up soon when it is cut."""
    monkeypatch.setattr("ackscope.object_path._RETRY_SECONDS", 0.2)
    known = dict(spark.sparkContext.environment)
    with object_server() as direct:
        found = NetworkLink(urlsplit(direct[ENDPOINT]).port)
        values = through(direct, found.port)
        with environment(values):
            spark.sparkContext.environment.update(values)
            yield found
        found.close()
        spark.sparkContext.environment.clear()
        spark.sparkContext.environment.update(known)


@pytest.fixture
def bucket(link) -> ObjectPath:
    """An empty prefix."""
    return ObjectPath(BASE, uuid4().hex)


@contextmanager
def streaming(bucket, session) -> Iterator[None]:
    """A stream in a thread; asked to stop at the end, which raises what it raised."""
    stop, errors = Stop(), []

    def work() -> None:
        try:
            roots = bucket / "landing", bucket / "rollups"
            jobs.stream(*roots, None, 0.5, session, stop, SystemClock(), delta=False)
        except AckscopeError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.requested = True
        thread.join(60)
    assert not thread.is_alive()
    for error in errors:
        raise error


def wait_for(condition, what, seconds=600):
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.5)


def status(bucket):
    """The status document; {} before the first."""
    try:
        return json.loads((bucket / "rollups" / "_status.json").read_bytes())
    except FileNotFoundError:
        return {}


@pytest.mark.timeout(2400)
def test_a_kill_and_a_bucket_that_is_away_change_nothing(bucket, link, tmp_path, session, fingerprint, caplog):
    """Killed at work, then without its bucket while files land: each hour is that of one `run`; two lines tell it."""
    landing = tmp_path / "landing"
    caplog.set_level("INFO")
    write_random(landing, seed=3, span=4000)
    upload(landing, bucket / "landing")
    roots = ["--landing", str(bucket / "landing"), "--rollups", str(bucket / "rollups")]
    process = subprocess.Popen([sys.executable, "-m", "ackscope", "pipeline", "stream", *roots, "--no-delta"])
    try:
        wait_for(lambda: any((bucket / "rollups" / "latency_1m").below()), "a first file")
    finally:
        process.kill()
        process.wait()
    late = write_random(tmp_path / "late", seed=9, span=600)
    with streaming(bucket, session):
        wait_for(lambda: status(bucket).get("batches"), "the first batch")
        before = status(bucket)["landing_rows"]
        link.turn(LinkState.CUT)
        with pytest.raises(ObjectStorageError):
            upload(tmp_path / "late", bucket / "landing")
        wait_for(lambda: "stream waits" in caplog.text, "the stream to notice")
        link.turn(LinkState.OPEN)
        upload(tmp_path / "late", bucket / "landing")
        wait_for(lambda: status(bucket)["landing_rows"] >= before + sum(map(len, late.values())), "the late files")

    events = [(it.levelname, it.msg["event"]) for it in caplog.records if it.name.startswith("pipeline.")]
    assert [("ERROR", "stream waits, and tries again"), ("INFO", "stream continues")] == events[1:]
    assert 0 == status(bucket)["lag_seconds"]
    upload(tmp_path / "late", landing)
    jobs.run(landing, tmp_path / "batch", session, SystemClock(), minutes_only=True, delta=False)
    assert fingerprint(tmp_path / "batch") == fingerprint(bucket / "rollups")

"""Work that is repeated until the storage answers."""

import threading
from unittest.mock import Mock

import pytest

from ackscope.clock import SystemClock
from ackscope.errors import DataError
from ackscope.object_path import ObjectStorageError
from pipeline import storage_retry
from pipeline.session import JobError
from pipeline.stop import Stop, StoppedError
from pipeline.storage.store import LostCommitError
from pipeline.storage_retry import StorageRetry

AWAY = ObjectStorageError("s3://b/x", "no route")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(storage_retry, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(storage_retry, "RENEW_SECONDS", 0.3)


def test_two_lines_are_logged_whatever_fails_meanwhile(caplog):
    """One when it begins, one when it ends; a commit that another writer won is repeated, too."""
    caplog.set_level("INFO")
    work = Mock(side_effect=[AWAY, LostCommitError("x: another writer committed meanwhile"), AWAY, 7])
    retry = StorageRetry(Stop(), SystemClock())

    assert 7 == retry.repeat(work)
    assert 4 == work.call_count
    assert ["stream waits, and tries again", "stream continues"] == [it.msg["event"] for it in caplog.records]
    assert "no route" in caplog.records[0].msg["error"]
    assert retry.since is None


def test_the_beginning_is_known_while_it_fails():
    """So a lag can be given for files that nobody can see."""
    retry = StorageRetry(Stop(), SystemClock())
    seen = []

    def work():
        seen.append(retry.since)
        if len(seen) < 3:
            raise AWAY

    before = SystemClock().now().wall
    retry.repeat(work)

    assert None is seen[0]
    assert seen[1] == seen[2] >= before


@pytest.mark.parametrize("error", [LostCommitError("x: another writer committed meanwhile"), AWAY])
def test_work_that_another_process_does_now_ends_without_a_line(caplog, error):
    """The stream says it in one line, whether it notices the lost lease or the lost commit first."""
    replaced = threading.Event()
    work = Mock(side_effect=error)

    if isinstance(error, LostCommitError):
        threading.Timer(0.05, replaced.set).start()
    else:
        replaced.set()
    with pytest.raises(StoppedError):
        StorageRetry(Stop(), SystemClock(), replaced).repeat(work)

    assert 1 == work.call_count
    assert [] == caplog.records


def test_a_commit_that_another_job_won_is_repeated_if_the_lease_stays():
    """Such as that of a `run`: the stream does its batch again."""
    work = Mock(side_effect=[LostCommitError("x"), 7])

    assert 7 == StorageRetry(Stop(), SystemClock(), threading.Event()).repeat(work)


def test_a_stop_ends_it_and_other_errors_do_too():
    """Without another attempt."""
    stop = Stop()

    def work():
        stop.requested = True
        raise AWAY

    with pytest.raises(StoppedError):
        StorageRetry(stop, SystemClock()).repeat(work)
    with pytest.raises(DataError, match="damaged"):
        StorageRetry(Stop(), SystemClock()).repeat(Mock(side_effect=DataError("damaged")))


def test_a_spark_job_that_fails_is_repeated_a_few_times(caplog):
    """One lost task does not end the stream; a job that never works does, with its own line."""
    caplog.set_level("INFO")
    error = JobError("latency_1m of cluster shop could not be computed from s3://b: a worker exited")
    once, always = Mock(side_effect=[error, 7]), Mock(side_effect=error)

    assert 7 == StorageRetry(Stop(), SystemClock()).repeat(once)
    assert ["stream waits, and tries again", "stream continues"] == [it.msg["event"] for it in caplog.records]
    with pytest.raises(JobError, match="a worker exited"):
        StorageRetry(Stop(), SystemClock()).repeat(always)
    assert 4 == always.call_count

"""A job that is stopped: its message, and the released lock."""

import fcntl
import os
import signal
from contextlib import contextmanager

import pytest

from ackscope.errors import DataError, UsageError
from pipeline.cli.graceful import graceful
from pipeline.stop import StoppedError
from pipeline.storage.rollups import Rollups

pytestmark = pytest.mark.usefixtures("restored_signals")


@contextmanager
def no_session():
    """A Spark session that must not be started."""
    pytest.fail("Spark was started")
    yield


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_one_line(number):
    """Whatever the job was doing, the message says how to continue; Spark is not started any more."""
    with (  # noqa: PT012  the signal comes from within
        pytest.raises(DataError, match=r"^stopped before the end; run it again$") as caught,
        graceful(no_session, "run it again") as (stop, session),
    ):
        os.kill(os.getpid(), number)

        assert not stop.go_on()

        with session():
            pass

    assert 3 == caught.value.exit_code


def test_a_job_that_ends_by_itself_is_reported_as_stopped():
    """The job may have skipped the rest without an error."""
    with pytest.raises(DataError, match="stopped"), graceful(no_session, "") as (stop, _):
        stop.requested = True


def test_other_errors_stay():
    """An error of the command line is not a request to stop."""
    with pytest.raises(UsageError, match="no such cluster"), graceful(no_session, "run it again"):
        raise UsageError("no such cluster")


def test_a_wait_for_the_lock_hears_a_stop(tmp_path):
    """Another job may write for minutes."""
    answers = iter([True, False])
    rollups = Rollups(tmp_path, go_on=lambda: next(answers))
    with (tmp_path / "_lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        with pytest.raises(StoppedError), rollups.writer_lock():
            pytest.fail("two write at once")

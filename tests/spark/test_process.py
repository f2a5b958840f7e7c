"""The stream as a process: signals, a kill, and what it says."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import psutil
import pytest

from tests.spark.landing_files import write_random

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def command(root, verb, *more):
    """The command line of a job over `root`."""
    folders = ["--landing", str(root / "landing"), "--rollups", str(root / "rollups")]
    return [sys.executable, "-m", "ackscope", "pipeline", verb, *folders, *more]


@contextmanager
def working(root, verb, *more):
    """A job in a process group of its own, killed at the end if it is still there."""
    with (root / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            command(root, verb, *more),
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def streaming(root):
    """A stream that looks often."""
    return working(root, "stream", "--trigger", "500ms")


def wait_for(condition, what, seconds=300):
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


def ingested(root):
    """Landing rows that the running stream has rolled up."""
    path = root / "rollups" / "_status.json"
    return json.loads(path.read_bytes())["landing_rows"] if path.exists() else 0


def at_work(root):
    """Whether there is a file, one of the first of its commit: nothing counts yet."""
    return any((root / "rollups").glob("*/cluster=*/date=*/hour=*"))


def javas(process):
    """The Java processes below a process."""
    return [child for child in psutil.Process(process.pid).children(recursive=True) if child.name() == "java"]


def test_ctrl_c_ends_it_in_order(tmp_path):
    """Ctrl-C, which goes to the whole group, ends it with 0, without Java, within a few lines."""
    rows = sum(len(rows) for rows in write_random(tmp_path / "landing", seed=1, span=600).values())
    with streaming(tmp_path) as process:
        wait_for(lambda: ingested(tmp_path) >= rows, "the first batch")
        (java,) = javas(process)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)

        assert 0 == process.returncode
        assert not java.is_running()

    output = (tmp_path / "stderr").read_text().splitlines()

    assert [] == [line for line in output if "level=info logger=pipeline." not in line]
    assert len(output) <= 3


def test_a_kill_loses_and_doubles_nothing(session, fingerprint, tmp_path):
    """Killed at work, started again, stopped by SIGTERM: it ends with what one `run` gives, and leaves no Java."""
    from ackscope.clock import SystemClock
    from pipeline import jobs

    write_random(tmp_path / "landing", seed=3, span=4000)
    with streaming(tmp_path) as process:
        wait_for(lambda: at_work(tmp_path), "a first file")
        (java,) = javas(process)
        process.kill()
        process.wait()
        wait_for(lambda: not java.is_running(), "Java to follow")
    last = write_random(tmp_path / "landing", seed=9, span=600)
    with streaming(tmp_path) as process:
        wait_for(lambda: ingested(tmp_path) >= sum(len(rows) for rows in last.values()), "the last files")
        (java,) = javas(process)
        process.terminate()
        process.wait(60)

        assert 0 == process.returncode
        assert not java.is_running()

    jobs.run(tmp_path / "landing", tmp_path / "batch", session, SystemClock(), minutes_only=True)

    assert fingerprint(tmp_path / "batch") == fingerprint(tmp_path / "rollups")


def test_a_run_that_is_reported_to_stop_ends_in_order(tmp_path):
    """SIGTERM to a working `run`: one line says how to continue, Java and lock are gone, no partial table counts."""
    write_random(tmp_path / "landing", seed=3, span=4000)
    with working(tmp_path, "run") as process:
        wait_for(lambda: at_work(tmp_path), "a first file")
        (java,) = javas(process)
        process.terminate()
        process.wait(60)

        assert (3, b"") == (process.returncode, process.stdout.read())
        assert not java.is_running()

    assert (
        "ackscope pipeline: stopped before the end; what was committed is complete; run `ackscope pipeline run` "
        "again for the rest\n"
    ) == (tmp_path / "stderr").read_text()
    assert not (tmp_path / "rollups" / "_catalog").exists()
    with (tmp_path / "rollups" / "_lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_run_prints_one_document(tmp_path):
    """`run --json` prints its summary, and nothing on stderr."""
    made = write_random(tmp_path / "landing", seed=2, span=120)

    done = subprocess.run(command(tmp_path, "run", "--json"), capture_output=True, text=True, check=False, timeout=300)
    summary = json.loads(done.stdout)

    assert (0, "") == (done.returncode, done.stderr)
    assert sum(len(rows) for rows in made.values()) == summary["landing_rows"]
    assert len(made) == summary["landing_files"]
    # Two minutes of history hold no lasting shift, and no finding.
    assert {"changes", "episodes"} == {name for name, rows in summary["rollup_rows"].items() if not rows}


def test_without_memory_it_ends_instead_of_waiting():
    """A Java that has no memory left ends, and its last words are passed on."""
    program = """
import logging
from pipeline.session import SPARK_ERRORS, cause, spark_session
logging.basicConfig()
with spark_session() as spark:
    try:
        spark.sparkContext._gateway.new_array(spark._jvm.long, 2**28)
    except SPARK_ERRORS as error:
        print(cause(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)

    assert "its Java process is gone; check the kernel log" in done.stdout
    assert "Terminating due to java.lang.OutOfMemoryError" in done.stderr

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from lab.processes import Process, end, end_marked, marked, start, wait_ended

ENVIRON = {"PATH": os.environ["PATH"]}
SLEEP = ["sleep", "300"]


@pytest.fixture
def run(tmp_path):
    """Start programs of a lab in `tmp_path` and end all of them after the test."""

    def _run(*command, tied=False):
        return start(command, environ=ENVIRON, folder=tmp_path, output=tmp_path / "output", tied=tied)

    yield _run
    end_marked(tmp_path, 2)


def wait_until(condition, seconds=10):
    """Poll until `condition()` is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


def test_a_started_program_is_found_by_its_mark_and_ended(run, tmp_path):
    """The mark finds it, and ending it leaves not even a zombie."""
    process = run(*SLEEP)

    assert process.alive()
    assert [process] == marked(tmp_path)

    end([process], 5)

    assert not process.alive()
    assert not Path(f"/proc/{process.pid}").exists()


def test_every_program_is_found_as_soon_as_it_is_started(run, tmp_path):
    """The kernel shows an environment a moment after it lets the parent go on."""
    mark = f"ACKSCOPE_LAB={tmp_path}".encode()
    for _ in range(300):
        process = run(*SLEEP)

        assert mark in Path(f"/proc/{process.pid}/environ").read_bytes()

        process.signal(signal.SIGKILL)
        os.waitpid(process.pid, 0)


def test_a_program_leads_a_session_of_its_own(run):
    """A Ctrl-C in the terminal does not reach it."""
    process = run(*SLEEP)

    assert process.pid == os.getsid(process.pid)


def test_a_recycled_pid_is_not_signalled(run):
    """Another start time is another process: it is neither alive nor touched."""
    process = run(*SLEEP)
    earlier = Process(process.pid, process.started - 1)

    assert not earlier.alive()
    assert not earlier.signal(signal.SIGKILL)
    assert process.alive()


def test_a_signal_to_a_process_that_ended_does_nothing(run):
    """The return value shows it; there is no error."""
    process = run("true")
    wait_ended([process], 5)

    assert not process.signal(signal.SIGTERM)


def test_what_ignores_the_request_to_end_is_killed(run, tmp_path):
    """SIGTERM first, SIGKILL after the time that was given."""
    process = run("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    wait_until(lambda: "ready" in (tmp_path / "output").read_text())

    end([process], 0.2)

    assert not process.alive()


def test_descendants_in_other_sessions_are_found_and_ended(run, tmp_path):
    """The mark is inherited, so that what left the process group is seen as well."""
    run("sh", "-c", "setsid sleep 300 & exit 0")
    wait_until(lambda: len(marked(tmp_path)) == 1)

    assert [] == end_marked(tmp_path, 2)
    assert [] == marked(tmp_path)


def test_nothing_is_left_of_what_starts_while_its_parent_ends(run, tmp_path):
    """One look at all processes misses it now and then: the parent has ended, the child is not listed yet."""
    for _ in range(30):
        run("sh", "-c", "setsid sleep 300 & exit 0")

        # A busy machine may need longer; then it returns what is left.
        assert end_marked(tmp_path, 0.4) or not marked(tmp_path)


def test_a_program_is_found_while_it_executes_others(run, tmp_path):
    """Its environment cannot be read for a moment each time."""
    script = tmp_path / "again"
    script.write_text('[ "$1" = 0 ] && exec sleep 300\nexec sh "$0" $(($1 - 1))\n')
    process = run("sh", str(script), "1000")

    seen = [marked(tmp_path) for _ in range(300)]

    assert seen == [[process]] * 300


def test_output_goes_to_its_file_and_the_environment_is_not_inherited(run, tmp_path, monkeypatch):
    """Settings of the caller, such as RABBITMQ_NODENAME, do not reach a node."""
    monkeypatch.setenv("RABBITMQ_NODENAME", "somebody-elses")

    wait_ended([run("env")], 5)
    lines = (tmp_path / "output").read_text().splitlines()

    assert f"ACKSCOPE_LAB={tmp_path}" in lines
    assert not [line for line in lines if line.startswith("RABBITMQ_")]


def test_a_tied_program_dies_with_a_killed_parent(run, tmp_path):
    """Even through shells that exec: nothing outlives a parent that had no chance to clean up."""
    code = f"""
        import sys
        from pathlib import Path
        from lab.processes import start
        start(["sh", "-c", "exec sh -c 'exec sleep 300'"], environ={ENVIRON!r},
              folder=Path({str(tmp_path)!r}), output=Path({str(tmp_path / "output")!r}), tied=True)
        print("started", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert b"started\n" == parent.stdout.readline()
        wait_until(lambda: any(b"sleep" in Path(f"/proc/{p.pid}/cmdline").read_bytes() for p in marked(tmp_path)))

        parent.kill()

    wait_until(lambda: not marked(tmp_path))

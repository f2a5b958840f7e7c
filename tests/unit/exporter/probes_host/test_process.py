import logging
import os
import signal
import sys
import threading

from ackscope.clock import SystemClock
from exporter.probes_host.process import ProbeSupervisor, SupervisorHooks
from probes.ipc import encode
from tests.unit.exporter.made import SetClock, burst, eventually

LINE = encode("bursts", "shop", [burst()]).decode()

LOGGED = 'ts=2023-11-14T22:13:20Z level=warning logger=probes.link msg="link lost" error="no \\"route\\""\n'

TALKS = f"""
import sys
document = sys.stdin.readline()
sys.stdout.write({LINE!r})
print("not a line of ours", flush=True)
sys.stderr.write({LOGGED!r})
print(document.strip() + " was read", file=sys.stderr, flush=True)
sys.stdin.read()
"""


class Received:
    """Records the output of a supervised child."""

    def __init__(self):
        self.batches, self.starts = [], 0

    def started(self):
        """Count a start."""
        self.starts += 1

    def process(self, script, document=b"secret\n"):
        """A supervisor of a child that runs this script."""
        hooks = SupervisorHooks(on_batch=self.batches.append, on_start=self.started)
        return ProbeSupervisor(document, hooks, SystemClock(), [sys.executable, "-c", script])


def alive(pid):
    """Whether a process exists that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_lines_become_batches_and_its_log_is_passed_on(caplog):
    """An unknown line is counted; stderr is logged at its own level."""
    received = Received()
    process = received.process(TALKS)
    with caplog.at_level(logging.INFO):
        process.start()
        try:
            eventually(lambda: process.status().bad_lines == 1 and "was read" in caplog.text)
            status = process.status()
        finally:
            process.stop()

    assert [[burst()]] == [batch.bursts for batch in received.batches]
    assert (True, 0, 1) == (status.up, status.restarts, status.bad_lines)
    assert 0 <= status.age_seconds < 20
    expected = [("WARNING", "link lost", "probes.link", 'no "route"'), ("INFO", "secret was read", None, None)]
    assert expected == [
        (record.levelname, record.msg["event"], record.msg.get("source"), record.msg.get("error"))
        for record in caplog.records
        if record.name.endswith(".child")
    ]


def test_a_child_that_ends_is_started_again(caplog):
    """The restart is counted and logged, and totals restart; the second child works like the first."""
    received = Received()
    process = received.process(TALKS)
    process.start()
    try:
        eventually(lambda: len(received.batches) == 1)
        first = process.pid
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(received.batches) == 2)
        status, second = process.status(), process.pid
    finally:
        process.stop()

    assert (True, 1, 2) == (status.up, status.restarts, received.starts)
    assert first != second
    assert "the probe process exited" in caplog.text
    assert "by signal 9" in caplog.text
    assert "restarting the probe process" in caplog.text


def test_a_stop_ends_the_child_by_closing_its_input():
    """The child can sweep; nothing is left behind."""
    received = Received()
    process = received.process(TALKS + f"sys.stdout.write({LINE!r})\n")
    process.start()
    eventually(lambda: process.status().bad_lines == 1)
    pid = process.pid
    process.stop()

    assert 2 == len(received.batches)
    assert not alive(pid)
    assert (False, None) == (process.status().up, process.pid)


def test_a_child_that_does_not_listen_is_killed():
    """Input closed and SIGTERM ignored: SIGKILL, within the time of a stop."""
    received = Received()
    deaf = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.write({LINE!r})
sys.stdout.flush()
while True:
    time.sleep(60)
"""
    process = received.process(deaf)
    process.start()
    eventually(lambda: len(received.batches) == 1)
    pid = process.pid
    process.stop()

    assert not alive(pid)


def test_a_child_that_falls_silent_is_ended_and_started_again(caplog):
    """A hanging child is treated like an ended one."""
    clock = SetClock()
    hooks = SupervisorHooks(on_batch=lambda batch: None, on_start=lambda: None)
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    process = ProbeSupervisor(b"x\n", hooks, clock, silent)
    process.start()
    try:
        eventually(lambda: process.pid is not None)
        clock.mono += 31
        eventually(lambda: process.status().restarts == 1)
    finally:
        process.stop()

    assert "the probe process is silent; killing it" in caplog.text


def test_a_program_that_does_not_exist_is_reported(caplog):
    """Nothing crashes; it is tried again later."""
    hooks = SupervisorHooks(on_batch=lambda batch: None, on_start=lambda: None)
    process = ProbeSupervisor(b"", hooks, SystemClock(), ["/no/such/program"])
    process.start()
    eventually(lambda: "restarting the probe process" in caplog.text)
    process.stop()

    assert "cannot start the probe process" in caplog.text
    assert "No such file or directory" in caplog.text
    assert not process.status().up


def test_a_defect_of_a_receiver_costs_one_batch(caplog):
    """The next line is processed."""
    taken, first = [], threading.Event()

    def take(batch):
        if not first.is_set():
            first.set()
            raise ZeroDivisionError
        taken.append(batch)

    twice = f"import sys\nsys.stdin.readline()\nsys.stdout.write({LINE!r} * 2)\nsys.stdout.flush()\nsys.stdin.read()\n"
    hooks = SupervisorHooks(on_batch=take, on_start=lambda: None)
    process = ProbeSupervisor(b"x\n", hooks, SystemClock(), [sys.executable, "-c", twice])
    process.start()
    try:
        eventually(lambda: len(taken) == 1)
    finally:
        process.stop()

    assert "ZeroDivisionError" in caplog.text

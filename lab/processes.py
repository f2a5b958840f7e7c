"""Processes of the lab, identified by pid and start time, so that a recycled pid is never signalled.

Each has `ACKSCOPE_LAB=<folder of the lab>` in its environment, and its children inherit it. This mark identifies the
processes that an Erlang node leaves in other sessions (resolver, disk watcher); names are never used.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "ACKSCOPE_LAB"
_LAUNCH = Path(__file__).with_name("launch.py")
_POLL = 0.05
_EXEC_POLL, _EXEC_SECONDS = 0.001, 1.0


@dataclass(frozen=True, slots=True)
class Process:
    """One process.

    Attributes:
        started: start time in clock ticks since boot (field 22 of /proc/PID/stat).
    """

    pid: int
    started: int

    def alive(self) -> bool:
        """Return whether it is running; a zombie is not."""
        return _look(self.pid) == ("run", self.started)

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal. Returns False if the process has ended."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # The pidfd pins the pid, so it cannot be reused between the check and the signal.
            if not self.alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def start(command: Sequence[str], *, environ: Mapping[str, str], folder: Path, output: Path, tied: bool) -> Process:
    """Start a program in its own session with empty input; append its output to a file.

    Args:
        command: program and arguments.
        environ: its complete environment; the mark is added.
        folder: folder of its lab.
        output: file for stdout and stderr.
        tied: whether it is killed when the calling *thread* ends, so that nothing outlives a killed parent
            (prctl(2): the death signal belongs to the thread that started the child).
    """
    words = [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), *command] if tied else list(command)
    pid = os.posix_spawnp(
        words[0],
        words,
        {**environ, MARK: str(folder)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    seen = _look(pid)
    process = Process(pid, seen[1] if seen else 0)
    # Just after the start, the program's environment and its mark cannot be read.
    _environ(pid)
    return process


def marked(folder: Path) -> list[Process]:
    """All running processes of the lab in `folder` that this user can see."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        if mark not in _environ(pid).split(b"\0"):
            continue
        seen = _look(pid)
        if seen and seen[0] == "run":
            found.append(Process(pid, seen[1]))
    return found


def wait_ended(processes: Iterable[Process], seconds: float) -> list[Process]:
    """Wait until all have ended. Returns those that have not."""
    deadline = time.monotonic() + seconds
    left = [process for process in processes if process.alive()]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL)
        left = [process for process in left if process.alive()]
    return left


def end(processes: Sequence[Process], seconds: float) -> None:
    """Terminate all, then kill those that have not ended."""
    for process in processes:
        process.signal(signal.SIGTERM)
    left = wait_ended(processes, seconds)
    for process in left:
        process.signal(signal.SIGKILL)
    wait_ended(left, seconds)


def end_marked(folder: Path, seconds: float) -> list[Process]:
    """Wait until no process of the lab in `folder` runs, and kill the rest. Returns those that could not be killed.

    Only two looks in a row without a process count: one look misses a process that starts while its parent ends.
    """
    deadline = time.monotonic() + seconds
    give_up_at = time.monotonic() + seconds / 2
    before, left = [Process(0, 0)], marked(folder)
    while (before or left) and time.monotonic() < deadline:
        if time.monotonic() > give_up_at:
            for process in left:
                process.signal(signal.SIGKILL)
        time.sleep(_POLL)
        before, left = left, marked(folder)
    return left


def _environ(pid: int) -> bytes:
    """Return the initial environment of a process; empty if it has none or this user cannot read it.

    During exec a process has no environment for a moment, as in a chain of scripts. This waits for it.
    """
    deadline = time.monotonic() + _EXEC_SECONDS
    while True:
        try:
            found = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return b""
        if found or not _has_environ(pid) or time.monotonic() > deadline:
            return found
        time.sleep(_EXEC_POLL)


def _has_environ(pid: int) -> bool:
    """Return whether it has or will get an environment: False for an ended process or one started without."""
    try:
        fields = _fields(pid)
    except OSError:
        return False
    # Fields 23, 26, 50, 51 of /proc/PID/stat. The code has an address once the program is loaded; until then the
    # environment may look empty.
    size, code, first, last = int(fields[20]), int(fields[23]), int(fields[47]), int(fields[48])
    return size > 0 and (code == 0 or last > first)


def _fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on. The second one, the name, may contain spaces and parentheses."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _look(pid: int) -> tuple[str, int] | None:
    """Return the state ("run" or "ended") and start time of a pid, or None without such a process; reap a zombie."""
    try:
        fields = _fields(pid)
    except OSError:
        return None
    state, parent, threads, started = fields[0], int(fields[1]), int(fields[17]), int(fields[19])
    # The first thread of a node may have ended while its other threads shut down.
    if state not in {"Z", "X"} or threads > 1:
        return ("run", started)
    if parent == os.getpid():
        os.waitpid(pid, os.WNOHANG)
    return ("ended", started)

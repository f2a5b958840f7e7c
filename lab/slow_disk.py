"""A simulated slow disk: strace(1) delays every fsync and fdatasync of a node.

strace also stops the node at its other system calls, for some microseconds each.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackscope.cli import die_with_parent
from ackscope.errors import MissingPart

SYNCS = "fsync,fdatasync"
_ATTACHED_WITHIN = 20.0
_DETACHED_WITHIN = 20.0


@contextmanager
def slow_disk(pid: int, seconds: float) -> Iterator[None]:
    """Delay every sync of a process, in all its threads, by `seconds` during the block.

    Args:
        pid: of a node (`lab.processes[0].pid`).
        seconds: delay of each call.

    Raises:
        MissingPart: strace is missing, or may not attach to that process.
    """
    if shutil.which("strace") is None:
        raise MissingPart("strace is missing: apt-get install strace")
    delay = f"inject={SYNCS}:delay_enter={round(seconds * 1e6)}"
    process = subprocess.Popen(
        ["strace", "-f", "-e", f"trace={SYNCS}", "-e", delay, "-o", os.devnull, "-p", str(pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # Ctrl-C in a terminal must not end strace before it has detached.
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509  the call only asks the kernel
    )
    try:
        _wait_attached(process, pid)
        yield
    finally:
        # On SIGINT it detaches from the node, which keeps running.
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_DETACHED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _wait_attached(process: subprocess.Popen[bytes], pid: int) -> None:
    deadline, said = time.monotonic() + _ATTACHED_WITHIN, b""
    while not _all_traced(pid, process.pid):
        piece = _first_line(process)
        said += piece or b""
        if process.poll() is not None or time.monotonic() > deadline:
            last = said.decode(errors="replace").strip().splitlines()[-1:] or ["it printed nothing"]
            raise MissingPart(f"strace cannot attach to process {pid} ({last[0]}); run as root")


def _first_line(process: subprocess.Popen[bytes]) -> bytes | None:
    if process.stderr is None or not select.select([process.stderr], [], [], 0.1)[0]:
        return None
    return os.read(process.stderr.fileno(), 65536)


def _all_traced(pid: int, tracer: int) -> bool:
    tasks = list(Path(f"/proc/{pid}/task").glob("*/status"))
    try:
        return bool(tasks) and all(f"TracerPid:\t{tracer}\n" in task.read_text() for task in tasks)
    except OSError:
        # The thread ended in the meantime.
        return False

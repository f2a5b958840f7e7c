"""Resources that processes use, as the kernel counts them: CPU time, memory, files, sockets, threads."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of one process at one moment.

    Attributes:
        rss: resident bytes.
        peak: maximum of resident bytes since its start.
        sockets: open sockets; `files` includes them.
    """

    rss: int
    peak: int
    files: int
    sockets: int
    threads: int


def usage(pid: int) -> Usage:
    """Measure a process now.

    Raises:
        OSError: the process does not exist.
    """
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    links = [_target(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return Usage(
        # A zombie process has no memory, and its status has no such lines.
        rss=int(status.get("VmRSS", "0").split()[0]) * 1024,
        peak=int(status.get("VmHWM", "0").split()[0]) * 1024,
        files=len(links),
        sockets=sum(link.startswith("socket:") for link in links),
        threads=int(status["Threads"]),
    )


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        # The file was closed after it was listed.
        return ""


def cpu_seconds(pid: int) -> float:
    """CPU seconds so far of a process and its children, including children that have ended."""
    process = psutil.Process(pid)
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.Error:
            # The process ended after it was listed; its parent has its CPU time.
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Stretch:
    """Measures CPU time from its creation.

    Args:
        pids: name -> process id; None where there is no process.
    """

    def __init__(self, pids: Mapping[str, int | None]) -> None:
        self._pids = {name: pid for name, pid in pids.items() if pid is not None}
        self._began = time.monotonic()
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def per_minute(self) -> dict[str, float]:
        """Return the CPU seconds per minute of each process."""
        minutes = (time.monotonic() - self._began) / 60
        return {name: (cpu_seconds(pid) - self._before[name]) / minutes for name, pid in self._pids.items()}

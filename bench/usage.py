"""What processes use: processor time, memory, files, sockets, threads, as the kernel counts them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one moment.

    Attributes:
        rss: bytes resident.
        peak: most bytes that were resident at once since it started.
        sockets: open ones, counted among `files` too.
    """

    rss: int
    peak: int
    files: int
    sockets: int
    threads: int


def usage(pid: int) -> Usage:
    """Look at a process.

    Raises:
        OSError: it is gone.
    """
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    links = [_target(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return Usage(
        # One that has ended and was not waited for holds nothing, and says nothing of it.
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
        # Closed while it was looked at.
        return ""


def cpu_seconds(pid: int) -> float:
    """Processor seconds so far of a process, of its children, and of those that it waited for."""
    process = psutil.Process(pid)
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        try:
            times = each.cpu_times()
        except psutil.Error:
            # It ended while it was looked at; its parent has its time.
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Stretch:
    """Processor time from its making on.

    Args:
        pids: name -> process id; None where there is no process.
    """

    def __init__(self, pids: Mapping[str, int | None]) -> None:
        self._pids = {name: pid for name, pid in pids.items() if pid is not None}
        self._began = time.monotonic()
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def per_minute(self) -> dict[str, float]:
        """Name -> processor seconds a minute."""
        minutes = (time.monotonic() - self._began) / 60
        return {name: (cpu_seconds(pid) - self._before[name]) / minutes for name, pid in self._pids.items()}

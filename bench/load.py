"""CPU time of processes, as a share of one core."""

import time
from collections.abc import Mapping

import psutil


class Load:
    """Measures CPU time from its creation until `shares`.

    Args:
        processes: name -> process id.
    """

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._began = time.monotonic()
        self._before = {name: _seconds(process) for name, process in self._processes.items()}

    def shares(self) -> dict[str, float]:
        """Return the share of one core of each process; 1.0 is a whole core."""
        span = time.monotonic() - self._began
        return {name: (_seconds(process) - self._before[name]) / span for name, process in self._processes.items()}


def _seconds(process: psutil.Process) -> float:
    """CPU seconds of all its threads so far."""
    times = process.cpu_times()
    return float(times.user + times.system)

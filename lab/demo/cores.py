"""Which cores and priorities the parts of the demo get: the probes must not wait for Spark or the dashboard."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROBES = -10
"""Nice value of the probe process, where the system allows a negative one."""

_TRY_PRIORITY = f"import os; os.setpriority(os.PRIO_PROCESS, 0, {_PROBES})"
_TRY_REALTIME = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"


@dataclass(frozen=True, slots=True)
class CoreSharing:
    """How the parts of the demo share the cores.

    Attributes:
        probes: cores of the probe process; empty: all.
        others: cores of the exporter, Spark, Prometheus and the dashboard; empty: all.
        priority: nice value of the probe process; None: not raised.
        realtime: whether the probe process runs before all ordinary processes.
        lacking: what the machine does not allow, as a phrase; "" if nothing lacks.
    """

    probes: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    priority: int | None = None
    realtime: bool = False
    lacking: str = ""


def share_cores(cores: Iterable[int], *, may_raise: bool, may_realtime: bool) -> CoreSharing:
    """Give the probes the last core to themselves (the broker uses all), where there are two.

    Args:
        cores: the cores that this process may use.
        may_raise: whether a process may get a negative nice value.
        may_realtime: whether a process may be scheduled before all ordinary ones; containers often forbid it.
    """
    known = sorted(cores)
    lacking = [] if len(known) > 1 else ["a second core"]
    if not may_raise and not may_realtime:
        lacking.append("the right to raise a priority")
    split = len(known) > 1
    return CoreSharing(
        probes=(known[-1],) if split else (),
        others=tuple(known[:-1]) if split else (),
        priority=_PROBES if may_raise else None,
        realtime=may_realtime,
        lacking=" and ".join(lacking),
    )


def share_this_machine() -> CoreSharing:
    """`share_cores` of this machine."""
    return share_cores(
        os.sched_getaffinity(0), may_raise=_is_allowed(_TRY_PRIORITY), may_realtime=_is_allowed(_TRY_REALTIME)
    )


def _is_allowed(program: str) -> bool:
    """Whether a process of ours may run this line of Python about itself."""
    command = [sys.executable, "-I", "-S", "-c", program]
    tried = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    return tried.returncode == 0


def give_way(cores: tuple[int, ...], nice: int) -> None:
    """Move this process to some cores (empty: it stays) and lower its priority; called in a child before it runs."""
    if cores:
        os.sched_setaffinity(0, cores)
    if nice:
        os.nice(nice)


def move(pid: int, cores: tuple[int, ...], nice: int) -> None:
    """The same for a running process, all its threads and its children, to a fixed nice value that is not below theirs.

    What has ended in the meantime is left out.
    """
    for process in [pid, *_children(pid)]:
        for thread in _threads(process):
            with contextlib.suppress(OSError):
                if cores:
                    os.sched_setaffinity(thread, cores)
                os.setpriority(os.PRIO_PROCESS, thread, nice)


def _children(pid: int) -> list[int]:
    """All descendants of a process."""
    found: list[int] = []
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            for child in map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()):
                found += [child, *_children(child)]
    return found


def _threads(pid: int) -> list[int]:
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []

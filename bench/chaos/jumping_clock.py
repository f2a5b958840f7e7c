"""A wall clock that jumps: libfaketime gives chosen processes another time of day than the machine has.

Their monotonic clock, their waits and the times of their files stay those of the machine.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.errors import MissingPart

_PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime", "/usr/lib64/faketime")
_LIBRARY = "libfaketimeMT.so.1"
"""The variant for processes with threads."""

SLACK_SECONDS = 5.0
"""Longest time between an event and its wall time: a probe reads the clock when it adds up, not for each message."""

_SLEEP = """\
import select, time
time.sleep = lambda seconds: select.select((), (), (), seconds) and None
"""
"""A module that Python imports at its start. After a jump, `time.sleep` fails with EINVAL under libfaketime 0.9.10."""


def faketime_library() -> Path:
    """Return the path of libfaketime.

    Raises:
        MissingPart: it is not installed.
    """
    found = [path for place in _PLACES for path in Path("/").glob(f"{place[1:]}/{_LIBRARY}")]
    if not found:
        raise MissingPart("libfaketime is missing: run make setup-test, or apt-get install libfaketime")
    return found[0]


@dataclass(slots=True)
class JumpingClock:
    """The wall clock of the processes that have its environment. Its times are by the clock of this process.

    Attributes:
        file: tells libfaketime by how much their clock is ahead.
        jumps: time of each jump, seconds since 1970 -> by how many seconds the clock was ahead from then on.
        now: our own clock.
    """

    file: Path
    now: Callable[[], float] = time.time
    jumps: dict[float, float] = field(default_factory=dict)

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of a process with this clock.

        Raises:
            MissingPart: libfaketime is not installed.
        """
        library = faketime_library()
        if not self.jumps:
            self.jump(0.0)
        modules = self.file.with_suffix(".modules")
        modules.mkdir(exist_ok=True)
        (modules / "sitecustomize.py").write_text(_SLEEP)
        return {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(modules), os.environ.get("PYTHONPATH")))),
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            # Reading the file costs 3 microseconds; a cache would delay the jump by a second or more.
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            # Files that were written before a jump keep their times.
            "NO_FAKE_STAT": "1",
        }

    def jump(self, ahead: float) -> None:
        """Let the clock be so many seconds ahead of ours from now on; negative is behind, 0 the right time."""
        partial = self.file.with_suffix(".partial")
        partial.write_text(f"{ahead:+.0f}\n")
        partial.replace(self.file)
        self.jumps[self.now()] = ahead

    @property
    def ahead(self) -> float:
        """By how many seconds the clock is ahead."""
        return list(self.jumps.values())[-1] if self.jumps else 0.0

    @property
    def steady_since(self) -> float:
        """When it jumped last, seconds since 1970."""
        return list(self.jumps)[-1] if self.jumps else 0.0

    def moments(self, wall: float) -> list[float]:
        """Return when it showed a time, oldest first: after a jump back it shows some times twice, and others never."""
        begins = list(self.jumps)
        ends = [*begins[1:], self.now()]
        spans = zip(begins, ends, self.jumps.values(), strict=True)
        return [
            wall - ahead for begin, end, ahead in spans if begin - SLACK_SECONDS <= wall - ahead <= end + SLACK_SECONDS
        ]

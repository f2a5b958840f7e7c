"""The wall clock of a process jumps, with the library itself."""

import subprocess
import sys
import time

import pytest

from bench.chaos.jumping_clock import JumpingClock

pytestmark = pytest.mark.integration


def test_the_wall_clock_of_another_process_jumps_and_its_monotonic_clock_does_not(tmp_path):
    """Forward and back by an hour, and to the right time; the process can sleep as before."""
    clock = JumpingClock(tmp_path / "clock")
    words = "import time\nwhile input(): time.sleep(0.01), print(time.time(), time.monotonic(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", words],
        env=dict(clock.environment()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def ahead():
            process.stdin.write("read\n")
            process.stdin.flush()
            wall, mono = map(float, process.stdout.readline().split())
            return round((wall - time.time()) / 60), round((mono - time.monotonic()) / 60)

        seen = [ahead()]
        for seconds in (3600.0, -3600.0, 0.0):
            clock.jump(seconds)
            seen.append(ahead())
        process.stdin.write("\n")
        process.stdin.close()

    assert [(0, 0), (60, 0), (-60, 0), (0, 0)] == seen

"""The demo as a person runs it: to its end, and interrupted."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.e2e.story import pressing

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

DEMO = [sys.executable, "-m", "ackscope", "demo"]


def _family(pid: int) -> list[psutil.Process]:
    """A process and everything below it."""
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


def test_a_demo_that_ends_by_itself_prints_one_json_document() -> None:
    """Every part of the flow gave something, and the fault alone was found wrong.

    As README shows it, on the oldest broker, for `test_story` has the newest; `make demo` makes these options of its
    variables.
    """
    words = ["--fault", "stuck-consumer", "--broker", "3.10", "--for", "50", "--json"]
    done = subprocess.run([*DEMO, *words], capture_output=True, text=True, check=False)
    summary = json.loads(done.stdout)

    assert 0 == done.returncode, done.stderr
    assert summary["broker"].startswith("3.10.")
    assert (True, True) == (summary["dashboard_ok"], summary["metrics_ok"])
    assert ["stuck-consumer"] == [found["rule"] for found in pressing(summary["findings"])]
    assert {"classic", "quorum"} <= set(summary["confirm"])
    assert all(0 < item["p50"] <= item["p99"] and item["count"] > 0 for item in summary["confirm"].values())
    assert summary["send_delay_p99"] > 0
    assert summary["landing_rows"] > summary["rollup_rows"] > 0


def test_an_interrupted_demo_leaves_nothing_behind() -> None:
    """Ctrl-C reaches the whole foreground group, as a terminal sends it."""
    with subprocess.Popen(DEMO, stderr=subprocess.PIPE, text=True, start_new_session=True) as demo:
        try:
            assert demo.stderr is not None
            lines = iter(demo.stderr.readline, "")
            assert any("press Ctrl-C to stop everything" in line for line in lines)
            family = _family(demo.pid)
            folder = next(line.split()[2] for line in lines if "deleted at the end" in line)
            os.killpg(demo.pid, signal.SIGINT)
            demo.communicate(timeout=90)
        finally:
            # What it started ends with it.
            demo.kill()

    assert 0 == demo.returncode
    assert len(family) > 8
    deadline = time.monotonic() + 5
    while any(process.is_running() for process in family) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [] == [process for process in family if process.is_running()]
    assert not os.path.exists(folder)  # noqa: PTH110  a word from a log line


def test_an_unknown_fault_is_one_line() -> None:
    """With the nearest known one, before anything is started."""
    done = subprocess.run([*DEMO, "--fault", "stuck-consumr"], capture_output=True, text=True, check=False)

    assert 3 == done.returncode
    assert "ackscope demo: unknown fault 'stuck-consumr', did you mean 'stuck-consumer'?" in done.stderr
    assert 1 == done.stderr.count("\n")

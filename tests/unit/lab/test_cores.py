"""How the parts of the demo share the cores of a machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.demo.cores import CoreSharing, move, share_cores, share_this_machine
from lab.demo.services import Services


@given(st.sets(st.integers(0, 4095), min_size=1), st.booleans(), st.booleans())
def test_every_part_has_a_core_and_the_probes_share_theirs_with_no_other(cores, may_raise, may_realtime):
    """Where there are two; on a single core all parts use it, and the demo says what lacks."""
    sharing = share_cores(cores, may_raise=may_raise, may_realtime=may_realtime)

    assert set(sharing.probes) | set(sharing.others) == (cores if len(cores) > 1 else set())
    assert not set(sharing.probes) & set(sharing.others)
    assert (len(cores) > 1) == bool(sharing.probes) == bool(sharing.others)
    assert may_raise == (sharing.priority is not None)
    assert (len(cores) == 1) == ("a second core" in sharing.lacking)
    assert may_realtime == sharing.realtime
    assert (may_raise or may_realtime) != ("the right to raise a priority" in sharing.lacking)


def test_without_rights_the_demo_carries_on():
    """With cores of its own for the probes, and one phrase that says what lacks."""
    expected = CoreSharing((1,), (0,), lacking="the right to raise a priority")

    assert expected == share_cores([0, 1], may_raise=False, may_realtime=False)


def test_this_machine_is_asked_without_changing_this_process():
    """A child tries the priority."""
    before = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0), os.sched_getscheduler(0)
    sharing = share_this_machine()

    after = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0), os.sched_getscheduler(0)

    assert before == after
    assert before[1] >= set(sharing.probes) | set(sharing.others)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a single core cannot be split")
def test_a_service_runs_where_it_is_put(tmp_path: Path):
    """On its cores, with a lower priority than ours."""
    core = max(os.sched_getaffinity(0))
    words = "import os; print(sorted(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0))"
    services = Services(tmp_path)
    service = services.start("where", [sys.executable, "-c", words], stdout=subprocess.PIPE, cores=(core,), nice=3)
    said = service.process.communicate(timeout=60)[0].decode()
    services.stop()

    assert f"[{core}] {os.getpriority(os.PRIO_PROCESS, 0) + 3}\n" == said


_FAMILY = """
import os, subprocess, sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"])
sys.stdin.read()
child.wait()
"""


def test_a_running_process_is_moved_with_its_threads_and_children(tmp_path: Path) -> None:
    """Java is a child of the pipeline, and has many threads."""
    core = max(os.sched_getaffinity(0))
    nice = os.getpriority(os.PRIO_PROCESS, 0) + 2
    with subprocess.Popen(
        [sys.executable, "-c", _FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as family:
        # The child is up, so both threads of its parent are.
        assert family.stdout is not None
        assert "up\n" == family.stdout.readline()
        move(family.pid, (core,), nice)
        tasks = [int(entry.name) for entry in Path(f"/proc/{family.pid}/task").iterdir()]
        tasks += map(int, Path(f"/proc/{family.pid}/task/{family.pid}/children").read_text().split())
        where = {(frozenset(os.sched_getaffinity(task)), os.getpriority(os.PRIO_PROCESS, task)) for task in tasks}
        family.communicate("")

    assert 3 == len(tasks)
    assert {(frozenset({core}), nice)} == where


def test_a_process_that_has_ended_is_left_out() -> None:
    """Nothing is moved, and nothing fails."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    move(ended.pid, (max(os.sched_getaffinity(0)),), 19)

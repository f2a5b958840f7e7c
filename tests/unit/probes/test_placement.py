"""Priority and cores of the probe process."""

import os

import pytest

from ackscope.errors import ConfigError
from ackscope.settings import load
from probes.placement import place
from probes.settings import ProbesSettings


@pytest.fixture
def asked(monkeypatch):
    """What the system is asked for; the process of the test stays where it is."""
    calls = []
    monkeypatch.setattr(os, "setpriority", lambda *args: calls.append(("priority", *args)))
    monkeypatch.setattr(os, "sched_setaffinity", lambda *args: calls.append(("cores", *args)))
    monkeypatch.setattr(os, "sched_setscheduler", lambda *args: calls.append(("policy", *args[:2])))
    return calls


def test_by_default_the_process_stays_as_it_is(asked):
    """Nothing is asked of the system, and nothing refused."""
    assert [] == place(ProbesSettings())
    assert [] == asked


def test_priority_and_cores_are_applied(asked):
    """A priority of 0 is one, too."""
    assert [] == place(ProbesSettings(priority=0, realtime=True, cores=(3, 1)))
    assert [("priority", os.PRIO_PROCESS, 0, 0), ("policy", 0, os.SCHED_RR), ("cores", 0, (3, 1))] == asked


def test_what_the_system_refuses_is_named(monkeypatch):
    """Measurements go on without it."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    def unknown(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "sched_setaffinity", unknown)

    refused = place(ProbesSettings(priority=-10, realtime=True, cores=(0, 99)))

    assert [
        "priority -10 (permission denied)",
        "real-time scheduling (permission denied)",
        "cores 0, 99 (invalid argument)",
    ] == refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("priority: -21", "priority: must be at least -20"),
        ("priority: 20", "priority: must be at most 19"),
        ("cores: [-1]", "cores.0: must be at least 0"),
    ],
)
def test_what_no_system_has_is_an_error(tmp_path, text, message):
    """Before any process is started."""
    file = tmp_path / "probes.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=message):
        load(ProbesSettings, file, {})

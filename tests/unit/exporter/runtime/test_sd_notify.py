import os
import socket

import pytest

from exporter.runtime.sd_notify import SystemdNotifier


@pytest.fixture
def manager(tmp_path):
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(5)
        yield listener


def enabled(manager):
    """The lines of the next datagram."""
    return manager.recv(4096).decode().split("\n")


def reported(manager, **more):
    """A notifier that speaks to this socket."""
    return SystemdNotifier.from_environ({"NOTIFY_SOCKET": manager.getsockname(), **more}, pid=7)


def test_every_state_is_reported_in_a_datagram_of_its_own(manager):
    """In the words of sd_notify(3)."""
    notify = reported(manager, WATCHDOG_USEC="3000000")
    notify.ready("serving http://127.0.0.1:9419")
    notify.reloading()
    notify.ping_watchdog()
    notify.stopping()
    ready, reloading, ping_watchdog, stopping = (enabled(manager) for _ in range(4))

    assert ["READY=1", "STATUS=serving http://127.0.0.1:9419"] == ready
    assert "RELOADING=1" == reloading[0]
    assert reloading[1].removeprefix("MONOTONIC_USEC=").isdecimal()
    assert (["WATCHDOG=1"], ["STOPPING=1"]) == (ping_watchdog, stopping)


def test_a_socket_may_be_abstract():
    """Its name begins with a zero byte, for which an @ stands."""
    name = f"ackscope-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name}")
        listener.settimeout(5)
        SystemdNotifier.from_environ({"NOTIFY_SOCKET": f"@{name}"}).stopping()

        assert ["STOPPING=1"] == enabled(listener)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({}, None),
    ],
)
def test_a_watchdog_is_heeded_where_it_means_us(manager, more, expected):
    """The variables may have been meant for the process that started us."""
    assert expected == reported(manager, **more).watchdog


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "relative"}])
def test_without_a_manager_nothing_is_reported(environ):
    """Neither at a terminal nor in a container."""
    notify = SystemdNotifier.from_environ(environ)
    notify.ready("x")

    assert not notify.enabled


def test_a_manager_that_is_removed_is_no_error(tmp_path, caplog):
    """It is reported in the log, and the work goes on."""
    SystemdNotifier(str(tmp_path / "gone")).ready("x")

    logged = caplog.records[0].msg
    assert ("sd_notify failed", "READY=1") == (logged["event"], logged["state"])
    assert "No such file or directory" == logged["error"]

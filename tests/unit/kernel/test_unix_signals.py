"""Signals that are never lost."""

import signal
import threading
from pathlib import Path
from queue import Empty

import pytest

from ackscope.unix_signals import UnixSignals

ONE, OTHER, NEITHER = signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP

pytestmark = pytest.mark.usefixtures("restored_signals")


@pytest.fixture
def signals() -> UnixSignals:
    """Return a watcher of two signals."""
    return UnixSignals((ONE, OTHER))


def _elsewhere(number: int) -> None:
    """Send the signal to a thread other than the main one, after a short delay."""

    def take() -> None:
        signal.pthread_kill(threading.get_ident(), number)

    threading.Timer(0.05, take).start()


def test_a_signal_that_another_thread_gets_wakes_the_main_one(signals: UnixSignals) -> None:
    """Python's own handlers would wait for the main thread, which sleeps."""
    _elsewhere(ONE)

    assert ONE == signals.get(10)


def test_signals_come_in_order(signals: UnixSignals) -> None:
    """None is lost while nobody asks."""
    for number in (OTHER, ONE, OTHER):
        signal.raise_signal(number)

    assert [OTHER, ONE, OTHER] == [signals.get(0) for _ in range(3)]


def test_silence_is_reported(signals: UnixSignals) -> None:
    """A timeout returns nothing, even after other signals."""
    signal.signal(NEITHER, lambda _number, _frame: None)
    signal.raise_signal(NEITHER)

    with pytest.raises(Empty):
        signals.get(0.05)


def test_closed_they_belong_to_those_who_had_them() -> None:
    """The previous handlers and wakeup are restored, and no descriptor is left."""
    heard: list[int] = []
    signal.signal(ONE, lambda number, _frame: heard.append(number))
    fds = len(list(Path("/proc/self/fd").iterdir()))
    with UnixSignals((ONE, OTHER)) as signals:
        signal.raise_signal(ONE)

        assert (ONE, []) == (signals.get(0), heard)
    signal.raise_signal(ONE)

    assert [ONE] == heard
    assert (-1, fds) == (signal.set_wakeup_fd(-1), len(list(Path("/proc/self/fd").iterdir())))

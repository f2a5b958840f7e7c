import signal
from queue import SimpleQueue

from exporter.runtime.reloader import ReloadResult
from exporter.runtime.run_loop import READY_WITHIN, run_service
from exporter.runtime.sd_notify import SystemdNotifier
from tests.unit.exporter.made import SetClock

URL = "http://127.0.0.1:9419"


class Manager(SystemdNotifier):
    """Records what the service manager would get."""

    def __init__(self, watchdog=None, *, enabled=True):
        super().__init__("/nowhere" if enabled else None, watchdog)
        self.reported = []

    def _send(self, *lines):
        if self.enabled:
            self.reported += [line for line in lines if not line.startswith("MONOTONIC_USEC=")]


class Fake:
    """A service that records its calls; one signal arrives per call."""

    url = URL

    def __init__(self, *signals, ready=(True,), is_healthy=True, tick=0.0):
        self.done, self._ready, self._sound, self._tick = [], list(ready), is_healthy, tick
        self.signals = SimpleQueue()
        self._later = list(signals)
        self.clock = SetClock()

    def start(self):
        """Noted."""
        self.done.append("start")

    def stop(self):
        """Noted."""
        self.done.append("stop")

    def reload(self):
        """Noted; the file is wrong."""
        self.done.append("reload")
        return ReloadResult(ok=False, line="not reloaded")

    def ready(self):
        """One answer after the other; the last one stays."""
        return self._ready.pop(0) if len(self._ready) > 1 else self._ready[0]

    def is_healthy(self):
        """Time passes, and the next signal comes."""
        self.clock.mono += self._tick
        if self._later:
            self.signals.put(self._later.pop(0))
        return self._sound


def lived(fake, manager):
    """Return the exit code, the calls, and the messages to the manager."""
    code = run_service(fake, fake.signals, manager, fake.clock)
    return code, fake.done, manager.reported


def test_a_service_starts_reloads_and_ends_by_signals():
    """The manager hears of each: a reload ends with its line as the status."""
    reported = lived(Fake(signal.SIGHUP, signal.SIGTERM), Manager())
    status = [f"STATUS=serving {URL}", f"STATUS=serving {URL}; not reloaded"]

    expected = ["READY=1", status[0], "RELOADING=1", "READY=1", status[1], "STOPPING=1"]

    assert (0, ["start", "reload", "stop"], expected) == reported


def test_ready_is_reported_once_there_is_something_to_show():
    """And not before."""
    fake = Fake(0, 0, signal.SIGTERM, ready=(False, False, True))
    _, _, reported = lived(fake, Manager())

    assert ["READY=1", f"STATUS=serving {URL}", "STOPPING=1"] == reported
    assert [True] == fake._ready


def test_a_start_does_not_hang_on_a_broker():
    """After some seconds the service is ready, whatever the brokers are."""
    fake = Fake(0, signal.SIGTERM, ready=(False,), tick=READY_WITHIN)
    _, _, reported = lived(fake, Manager())

    assert ["READY=1", f"STATUS=serving {URL}", "STOPPING=1"] == reported


def test_a_service_that_moves_no_more_gives_no_sign_of_life():
    """The missing sign of life makes the manager restart it."""
    is_healthy, stuck = Manager(watchdog=60.0), Manager(watchdog=60.0)
    lived(Fake(signal.SIGINT), is_healthy)
    lived(Fake(signal.SIGINT, is_healthy=False), stuck)

    assert "WATCHDOG=1" in is_healthy.reported
    assert "WATCHDOG=1" not in stuck.reported


def test_without_a_manager_signals_are_all_that_counts():
    """Nothing is looked at again and again."""
    reported = lived(Fake(signal.SIGHUP, signal.SIGINT), Manager(enabled=False))

    assert (0, ["start", "reload", "stop"], []) == reported

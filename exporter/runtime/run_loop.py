"""From start to end: what signals ask for, and what the service manager is told."""

import logging
import signal
from queue import Empty
from typing import Protocol

from ackscope.clock import Clock
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.sd_notify import SystemdNotifier

log = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNALS = (*STOP_SIGNALS, signal.SIGHUP)
"""What `live` goes by."""
READY_WITHIN = 30.0
"""Seconds after which we call ourselves ready though a cluster has not answered: a start must not hang on a broker."""
_LOOK = 0.2


class SignalSource(Protocol):
    """Where signals come from."""

    def get(self, timeout: float | None = None) -> int:
        """The next one, waited for so many seconds.

        Raises:
            Empty: none came.
        """


class RunnableService(Protocol):
    """What is run."""

    @property
    def url(self) -> str:
        """Where it answers."""

    def start(self) -> None:
        """Start every part."""

    def stop(self) -> None:
        """End every part."""

    def ready(self) -> bool:
        """Whether there is something to show of every cluster."""

    def reload(self) -> ReloadResult:
        """Read the configuration again."""

    def is_healthy(self) -> bool:
        """Whether every part still moves."""


def run_service(service: RunnableService, signals: SignalSource, notify: SystemdNotifier, clock: Clock) -> int:
    """Work until SIGTERM or SIGINT, reload at SIGHUP; the result is the exit code."""
    service.start()
    ready, late = False, clock.now().mono + READY_WITHIN
    while True:
        if not ready and (service.ready() or clock.now().mono >= late):
            ready = True
            notify.ready(f"serving {service.url}")
        if service.is_healthy():
            notify.ping_watchdog()
        got = _next(signals, _pause(notify, ready=ready))
        if got in STOP_SIGNALS:
            break
        if got == signal.SIGHUP:
            notify.reloading()
            done = service.reload()
            if ready:
                notify.ready(f"serving {service.url}; {done.line}")
    log.info("stopping: %s", signal.Signals(got).name)
    notify.stopping()
    service.stop()
    return 0


def _pause(notify: SystemdNotifier, *, ready: bool) -> float | None:
    """Seconds until there is something to do without a signal; None where there is not."""
    if not notify.enabled:
        return None
    if not ready:
        return _LOOK
    return None if notify.watchdog is None else notify.watchdog / 3


def _next(signals: SignalSource, seconds: float | None) -> int | None:
    try:
        return signals.get(timeout=seconds)
    except Empty:
        return None

"""The run loop: signals, readiness and the systemd watchdog."""

import signal
from queue import Empty
from typing import Protocol

from ackscope.clock import Clock
from ackscope.log import get_logger
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.sd_notify import SystemdNotifier

log = get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNALS = (*STOP_SIGNALS, signal.SIGHUP)
"""Signals that `run_service` handles."""
READY_WITHIN = 30.0
"""Seconds after which the service reports ready even if a cluster has not answered, so that none blocks startup."""
_LOOK = 0.2


class SignalSource(Protocol):
    """Source of Unix signals."""

    def get(self, timeout: float | None = None) -> int:
        """Wait up to `timeout` seconds for the next signal.

        Raises:
            Empty: no signal came in time.
        """


class RunnableService(Protocol):
    """The service to run."""

    @property
    def url(self) -> str:
        """URL that the service serves."""

    def start(self) -> None:
        """Start every part."""

    def stop(self) -> None:
        """Stop every part."""

    def ready(self) -> bool:
        """Whether every cluster has been polled."""

    def reload(self) -> ReloadResult:
        """Reload the configuration."""

    def is_healthy(self) -> bool:
        """Whether every poller still makes progress."""


def run_service(service: RunnableService, signals: SignalSource, notify: SystemdNotifier, clock: Clock) -> int:
    """Run until SIGTERM or SIGINT, reload on SIGHUP. Returns the exit code."""
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
    log.info("stopping", signal=signal.Signals(got).name)
    notify.stopping()
    service.stop()
    return 0


def _pause(notify: SystemdNotifier, *, ready: bool) -> float | None:
    """Seconds to wait for the next signal; None waits indefinitely."""
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

"""From start to end: what signals ask for, and what the service manager is told."""

import logging
import signal
from queue import Empty, SimpleQueue
from typing import Protocol

from ackscope.clock import Clock
from exporter.notify import Notify
from exporter.reload import Reloaded

log = logging.getLogger(__name__)

ENDS = (signal.SIGTERM, signal.SIGINT)
READY_WITHIN = 30.0
"""Seconds after which we call ourselves ready though a cluster has not answered: a start must not hang on a broker."""
_LOOK = 0.2


class Service(Protocol):
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

    def reload(self) -> Reloaded:
        """Read the configuration again."""

    def sound(self) -> bool:
        """Whether every part still moves."""


def listen() -> "SimpleQueue[int]":
    """A queue into which the signals come that concern us."""
    # A SimpleQueue and not an Event: a signal handler may put into it at any moment without a deadlock.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (*ENDS, signal.SIGHUP):
        signal.signal(number, lambda got, _frame: signals.put(got))
    return signals


def live(service: Service, signals: "SimpleQueue[int]", notify: Notify, clock: Clock) -> int:
    """Work until SIGTERM or SIGINT, reload at SIGHUP; the result is the exit code."""
    service.start()
    ready, late = False, clock.now().mono + READY_WITHIN
    while True:
        if not ready and (service.ready() or clock.now().mono >= late):
            ready = True
            notify.ready(f"serving {service.url}")
        if service.sound():
            notify.alive()
        got = _next(signals, _pause(notify, ready=ready))
        if got in ENDS:
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


def _pause(notify: Notify, *, ready: bool) -> float | None:
    """Seconds until there is something to do without a signal; None where there is not."""
    if not notify.heard:
        return None
    if not ready:
        return _LOOK
    return None if notify.watchdog is None else notify.watchdog / 3


def _next(signals: "SimpleQueue[int]", seconds: float | None) -> int | None:
    try:
        return signals.get(timeout=seconds)
    except Empty:
        return None

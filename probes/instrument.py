"""The measurement error of the probes: how late the event loop wakes, and a loop with exact timers.

Send delay, the other half of the error, is recorded with every message.
"""

import asyncio
import gc
import selectors
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from probes.recent_values import RecentValues

PERIOD, CALM_PERIOD = 0.01, 0.1
"""Seconds between two ticks: of a one-shot run, and of a continuous one, which must be cheap (waking up a process costs
some 0.1 ms)."""

_MISSED_MOST = 1000

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop whose timers are exact to tens of microseconds.

    The usual epoll selector rounds every timer up to whole milliseconds, as much as a quick confirm takes;
    select(2) does not. It serves the few dozen sockets of a probe process equally well.
    """
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def run_without_gc(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on such a loop without garbage collection; Ctrl-C and SIGTERM cancel it, so that it can clean up.

    Raises:
        KeyboardInterrupt: it was cancelled by a signal.
    """

    async def watched() -> T:
        running = asyncio.ensure_future(work)
        # Ctrl-C cancels by itself.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        return await running

    with asyncio.Runner(loop_factory=new_loop) as runner:
        try:
            return runner.run(watched())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def freeze_interpreter() -> None:
    """Keep garbage collections short with gc.freeze; call once, after all imports.

    A full collection walks all imported objects: 19 ms measured, and below 1 us after gc.freeze.
    """
    gc.collect()
    gc.freeze()


class LoopLag:
    """Measures how late the event loop wakes up.

    After a stall every missed tick counts with its own lateness, so a long stall weighs as much as it lasted.

    Args:
        span: seconds of the recent window; None for the whole run.
        period: seconds between two ticks.
    """

    def __init__(self, now: float, *, span: float | None, period: float = PERIOD) -> None:
        self.recent = RecentValues(span=span)
        self._period = period
        self._due = now + period

    @property
    def due(self) -> float:
        """Time of the next tick, in monotonic seconds."""
        return self._due

    def look(self, now: float) -> None:
        """Record that the loop woke up at `now`."""
        missed = 0
        while self._due <= now and missed < _MISSED_MOST:
            self.recent.record(now - self._due, now)
            self._due += self._period
            missed += 1
        if self._due <= now:
            self._due = now + self._period

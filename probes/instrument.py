"""Measures how late the event loop wakes up, and provides a loop with exact timers.

Loop lag is one part of the measurement error of the probes. The other part, the send delay, is recorded with every
message.
"""

import asyncio
import gc
import selectors
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from probes.recent_values import RecentValues

PERIOD, CALM_PERIOD = 0.01, 0.1
"""Seconds between two ticks of a one-shot run, and of a continuous run.

A continuous run ticks less often, because each wake-up of a process costs about 0.1 ms.
"""

_MISSED_MOST = 1000

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop whose timers are exact to tens of microseconds.

    The usual epoll selector rounds every timer up to whole milliseconds, as long as a fast confirm takes. select(2)
    does not round, and serves the few dozen sockets of a probe process equally well.
    """
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def run_without_gc(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a `new_loop` without garbage collection. Ctrl-C and SIGTERM cancel it, so it can clean up.

    Raises:
        KeyboardInterrupt: a signal cancelled the coroutine.
    """

    async def watched() -> T:
        running = asyncio.ensure_future(work)
        # Only SIGTERM needs a handler: Ctrl-C already cancels the coroutine.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
        return await running

    with asyncio.Runner(loop_factory=new_loop) as runner:
        try:
            return runner.run(watched())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


def freeze_interpreter() -> None:
    """Keep garbage collections short with gc.freeze. Call this once, after all imports.

    A full collection visits all imported objects, which took 19 ms. After gc.freeze it took less than 1 us.
    """
    gc.collect()
    gc.freeze()


class LoopLag:
    """Measures how late the event loop wakes up.

    After a stall, every missed tick counts with its own lateness, so the weight of a stall grows with its duration.

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

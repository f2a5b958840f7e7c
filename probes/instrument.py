"""The instrument's own error: how late its clock loop wakes, and a loop that can wake on time.

Send delay, the other half of the error, is kept with every message.
"""

import asyncio
import gc
import selectors
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from probes.recent_values import RecentValues

PERIOD, CALM_PERIOD = 0.01, 0.1
"""Seconds between two looks at the clock: of a run that someone waits for, and of one that goes on for years and is to
cost little (a process that wakes costs some 0.1 ms)."""

_MISSED_MOST = 1000

T = TypeVar("T")


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop whose timers are exact to tens of microseconds.

    The usual epoll selector rounds every timer up to whole milliseconds, as much as a quick confirm takes;
    select(2) does not. It serves the few dozen sockets of a probe process equally well.
    """
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def run_without_gc(work: Coroutine[Any, Any, T]) -> T:
    """Run something to its end on such a loop; Ctrl-C and SIGTERM cancel it, and it clears up after itself.

    Raises:
        KeyboardInterrupt: it was cancelled so.
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
    """Keep the garbage collector from stopping the clock; call once, when everything is imported.

    A full collection walks all that the imports left behind: 19 ms measured, and below 1 us with it set aside.
    """
    gc.collect()
    gc.freeze()


class LoopLag:
    """Compares when the loop should have woken with when it did.

    After a stall every missed look is counted with its own lateness: one long stall weighs as much as it lasted.

    Args:
        span: seconds of the recent window; None for the whole run.
        period: seconds between two looks.
    """

    def __init__(self, now: float, *, span: float | None, period: float = PERIOD) -> None:
        self.recent = RecentValues(span=span)
        self._period = period
        self._due = now + period

    @property
    def due(self) -> float:
        """When to look next, in monotonic seconds."""
        return self._due

    def look(self, now: float) -> None:
        """Enter that the loop woke at `now`."""
        missed = 0
        while self._due <= now and missed < _MISSED_MOST:
            self.recent.record(now - self._due, now)
            self._due += self._period
            missed += 1
        if self._due <= now:
            self._due = now + self._period

"""A queue of Unix signals that loses none, whichever thread of the process receives them.

The kernel delivers a signal to any thread that accepts it, often to one that is just starting another thread. Python
runs handlers in the main thread only, and a main thread that waits for a lock does not wake up for a signal of another
thread. A file descriptor always wakes it: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd
"""

import os
import select
import signal
import time
from collections.abc import Sequence
from queue import Empty
from typing import Self


class UnixSignals:
    """A queue of received signals, in order; a context manager.

    Create it in the main thread, once per process. Until it is closed these signals have no other effect.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = frozenset(numbers)
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._woken = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # Only a signal with a handler is written to the pipe.
        self._before = {number: signal.signal(number, lambda _number, _frame: None) for number in numbers}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Restore the previous handlers; call it in the main thread."""
        for number, handler in self._before.items():
            # None means a handler that was not set by Python and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._woken)
        os.close(self._writer)
        os.close(self._reader)

    def get(self, timeout: float | None = None) -> int:
        """The next signal; any thread may call it.

        Args:
            timeout: seconds to wait; None waits forever.

        Raises:
            Empty: no signal within the timeout.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._reader], [], [], left)[0]:
                raise Empty
            try:
                (number,) = os.read(self._reader, 1)
            except BlockingIOError:
                # Another thread read it first.
                continue
            if number in self._numbers:
                return number

"""Signals that are heard for certain, whichever thread of the process gets them.

The kernel hands a signal to any thread that can take it: often to one that is starting a thread just then. Python runs
handlers in the main thread alone, and a main thread that waits for a lock sleeps on, until the next signal comes to it.
What always wakes is a descriptor: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd
"""

import os
import select
import signal
import time
from collections.abc import Sequence
from queue import Empty
from typing import Self


class Signals:
    """A queue of the signals that came, in order.

    To be made in the main thread, once a process: from then on these signals do nothing else, until it is closed. For a
    `with`, too.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = frozenset(numbers)
        self._told, self._tell = os.pipe()
        os.set_blocking(self._told, False)
        os.set_blocking(self._tell, False)
        self._woken = signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        # Only a signal with a handler is told.
        self._before = {number: signal.signal(number, lambda _number, _frame: None) for number in numbers}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the signals back to those who had them; in the main thread."""
        for number, handler in self._before.items():
            # None is one that Python did not set, and cannot set again.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(self._woken)
        os.close(self._tell)
        os.close(self._told)

    def get(self, timeout: float | None = None) -> int:
        """The next one, waited for so many seconds; without end where it is None. Any thread may ask.

        Raises:
            Empty: none came.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._told], [], [], left)[0]:
                raise Empty
            try:
                (number,) = os.read(self._told, 1)
            except BlockingIOError:
                # Another thread was quicker.
                continue
            if number in self._numbers:
                return number

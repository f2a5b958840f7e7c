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


class Signals:
    """A queue of the signals that came, in order.

    To be made in the main thread, once a process: from then on these signals do nothing else.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = frozenset(numbers)
        self._told, self._tell = os.pipe()
        os.set_blocking(self._told, False)
        os.set_blocking(self._tell, False)
        signal.set_wakeup_fd(self._tell, warn_on_full_buffer=False)
        for number in numbers:
            # Only a signal with a handler is told.
            signal.signal(number, lambda _number, _frame: None)

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

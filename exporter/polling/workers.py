"""A few threads that do what is handed to them; one that hangs holds up only itself."""

import threading
from collections import deque
from collections.abc import Callable

QUICK = 4
"""Threads that are enough for a broker that answers."""

_IDLE_SECONDS = 30.0

Job = tuple[str, Callable[[], None]]
"""What the thread is called meanwhile, and what it does; it never raises."""


class Workers:
    """Does jobs in the order in which they were handed in, a few at a time.

    Threads are started when they are needed and end when they had nothing to do for half a minute. All are daemons:
    one that hangs ends with the time limit of what it waits for, and holds up no exit.

    Args:
        name: what an idle thread is called.
        most: never more threads than this.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._stopping = False

    @property
    def threads(self) -> list[threading.Thread]:
        """Those that live now."""
        with self._changed:
            return list(self._threads)

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Hand a job in."""
        with self._changed:
            self._jobs.append((name, work))
            if self._idle < len(self._jobs) and len(self._threads) < QUICK:
                self._hire()
            self._changed.notify()

    def relieve(self) -> None:
        """Start one more thread where a job waits: those that there are hang, or are slow."""
        with self._changed:
            if len(self._jobs) > self._idle and len(self._threads) < self._most:
                self._hire()

    def stop(self) -> None:
        """Take no further job; what is under way goes on to its end."""
        with self._changed:
            self._stopping = True
            self._jobs.clear()
            self._changed.notify_all()

    def _hire(self) -> None:
        if not self._stopping:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        thread = threading.current_thread()
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._jobs or self._stopping, timeout=_IDLE_SECONDS)
                self._idle -= 1
                if not self._jobs:
                    self._threads.discard(thread)
                    return
                thread.name, work = self._jobs.popleft()
            work()
            thread.name = self._name

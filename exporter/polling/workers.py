"""A few threads that do what is handed to them; one that hangs holds up only itself."""

import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

QUICK = 2
"""Threads that are enough for a broker that answers: more would open as many connections to it at once."""

_IDLE_SECONDS = 30.0

Job = tuple[str, Callable[[], None]]
"""What the thread is called meanwhile, and what it does; it never raises."""

_Hand = SimpleQueue[Job | None]
"""Where one resting thread gets its next job; None is the end."""


class Workers:
    """Does jobs in the order in which they were handed in, a few at a time.

    `QUICK` at a time, and one more each time that `relieve` says so. Threads are started when they are needed and end
    when they had nothing to do for half a minute. All are daemons: one that hangs ends with the time limit of what it
    waits for, and holds up no exit.

    Args:
        name: what an idle thread is called.
        most: never more threads than this.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._lock = threading.Lock()
        self._jobs: deque[Job] = deque()
        self._threads: set[threading.Thread] = set()
        self._resting: list[_Hand] = []
        self._stopping = False

    @property
    def threads(self) -> list[threading.Thread]:
        """Those that live now."""
        with self._lock:
            return list(self._threads)

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Hand a job in."""
        with self._lock:
            self._jobs.append((name, work))
            self._employ(QUICK)

    def relieve(self) -> None:
        """Have one more thread at work where a job waits: those that are hang, or are slow."""
        with self._lock:
            self._employ(self._most)

    def stop(self) -> None:
        """Take no further job; what is under way goes on to its end."""
        with self._lock:
            self._stopping = True
            self._jobs.clear()
            for hand in self._resting:
                hand.put(None)
            self._resting.clear()

    def _employ(self, most: int) -> None:
        """Have one that rests, or a new one, take the next job, where fewer than `most` are at work."""
        if self._stopping or not self._jobs or len(self._threads) - len(self._resting) >= most:
            return
        if self._resting:
            # The one that rests for the shortest time: in turns, all of a bad minute would be kept for good.
            self._resting.pop().put(self._jobs.popleft())
            return
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        thread, hand = threading.current_thread(), _Hand()
        while (job := self._next(hand)) is not None:
            thread.name, work = job
            work()
            thread.name = self._name

    def _next(self, hand: _Hand) -> Job | None:
        """The next job, waited for; None where there was none for long, or it is over: the thread ends."""
        thread = threading.current_thread()
        with self._lock:
            if self._stopping:
                self._threads.discard(thread)
                return None
            if self._jobs:
                return self._jobs.popleft()
            self._resting.append(hand)
        try:
            job = hand.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._lock:
                if hand in self._resting:
                    self._resting.remove(hand)
                    self._threads.discard(thread)
                    return None
            # Handed in at the very end.
            job = hand.get()
        if job is None:
            with self._lock:
                self._threads.discard(thread)
        return job

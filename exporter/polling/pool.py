"""A small thread pool that grows on request, so that a job that hangs blocks only itself."""

import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

BASE_THREADS = 2
"""Enough threads for a broker that answers. More would open as many connections to it at the same time."""

_IDLE_SECONDS = 30.0

_NamedJob = tuple[str, Callable[[], None]]
"""Name of the thread while the job runs, and the work, which never raises."""

_Mailbox = SimpleQueue[_NamedJob | None]
"""Queue through which one idle thread receives its next job; None ends the thread."""


class WorkerPool:
    """Runs jobs in order of submission, at most `BASE_THREADS` at a time. Each call of `grow` allows one more.

    Threads start on demand and end after 30 s without work. They are daemons: a hanging thread ends with the timeout
    of its request and does not delay exit.

    Args:
        name: name of idle threads.
        max_threads: upper bound of the number of threads.
    """

    def __init__(self, name: str, max_threads: int) -> None:
        self._name, self._max_threads = name, max_threads
        self._lock = threading.Lock()
        self._jobs: deque[_NamedJob] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle: list[_Mailbox] = []
        self._stopping = False

    @property
    def threads(self) -> list[threading.Thread]:
        """The live threads."""
        with self._lock:
            return list(self._threads)

    def submit(self, name: str, work: Callable[[], None]) -> None:
        """Add a job."""
        with self._lock:
            self._jobs.append((name, work))
            self._dispatch(BASE_THREADS)

    def grow(self) -> None:
        """Use one more thread if a job is waiting, because the busy threads hang or are slow."""
        with self._lock:
            self._dispatch(self._max_threads)

    def stop(self) -> None:
        """Discard waiting jobs and accept no more. Running jobs complete."""
        with self._lock:
            self._stopping = True
            self._jobs.clear()
            for mailbox in self._idle:
                mailbox.put(None)
            self._idle.clear()

    def _dispatch(self, max_busy: int) -> None:
        """Give the next job to an idle or a new thread if fewer than `max_busy` are busy."""
        if self._stopping or not self._jobs or len(self._threads) - len(self._idle) >= max_busy:
            return
        if self._idle:
            # Use the thread that became idle last. In rotation, all threads of a slow minute would stay alive forever.
            self._idle.pop().put(self._jobs.popleft())
            return
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        thread, mailbox = threading.current_thread(), _Mailbox()
        while (job := self._next(mailbox)) is not None:
            thread.name, work = job
            work()
            thread.name = self._name

    def _next(self, mailbox: _Mailbox) -> _NamedJob | None:
        """Wait for the next job. Returns None if the thread should end: after a long idle time, or a stop."""
        thread = threading.current_thread()
        with self._lock:
            if self._stopping:
                self._threads.discard(thread)
                return None
            if self._jobs:
                return self._jobs.popleft()
            self._idle.append(mailbox)
        try:
            job = mailbox.get(timeout=_IDLE_SECONDS)
        except Empty:
            with self._lock:
                if mailbox in self._idle:
                    self._idle.remove(mailbox)
                    self._threads.discard(thread)
                    return None
            # A job was assigned just as the wait timed out.
            job = mailbox.get()
        if job is None:
            with self._lock:
                self._threads.discard(thread)
        return job

"""Writes lines to a pipe in its own thread, so that a slow reader never delays a probe."""

import os
import queue
import threading
from collections.abc import Callable

from ackscope.log import get_logger

_LINES = 200

GATHER = 0.2
"""Seconds that a line waits to be written together with others, because each write wakes up two processes."""

_log = get_logger(__name__)


class PipeWriter:
    """Writes lines from a bounded queue to a pipe. If the queue is full, new lines are dropped, counted and logged.

    Args:
        descriptor: the pipe.
        broken: called once, from the thread, when the reader closes the pipe.
    """

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        self._descriptor, self._broken = descriptor, broken
        self._lines: queue.Queue[bytes | None] = queue.Queue(_LINES)
        self._dropped = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="outlet", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Enqueue a line; never blocks."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1
            if self._dropped == 1:
                _log.warning("reader of probe records is too slow, dropping records")
            return
        if self._dropped:
            _log.warning("reader of probe records keeps up again", dropped_batches=self._dropped)
            self._dropped = 0

    def close(self, timeout: float) -> None:
        """Write the remaining lines, for at most `timeout` seconds."""
        self._closing.set()
        try:
            self._lines.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _write(self) -> None:
        last = False
        while not last:
            lines = [self._lines.get()]
            self._closing.wait(GATHER)
            lines += [self._lines.get() for _ in range(self._lines.qsize())]
            last = lines[-1] is None
            rest = memoryview(b"".join(line for line in lines if line is not None))
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._broken()
                return

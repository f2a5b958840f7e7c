"""Interrupting the demo with Ctrl-C or SIGTERM."""

import signal
import sys
from types import FrameType


class End:
    """Turns the first SIGINT or SIGTERM into a KeyboardInterrupt."""

    def __init__(self) -> None:
        self._asked = False

    def listen(self) -> None:
        """Raise KeyboardInterrupt at the next signal."""
        signal.signal(signal.SIGTERM, self._interrupt)
        signal.signal(signal.SIGINT, self._interrupt)

    def check(self) -> None:
        """Raise a KeyboardInterrupt that was lost: one raised in a finalizer only prints a traceback."""
        if self._asked:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Ignore signals from now on: a second Ctrl-C must not interrupt the shutdown."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.hold()
        self._asked = True
        print("stopping all processes", file=sys.stderr, flush=True)
        raise KeyboardInterrupt

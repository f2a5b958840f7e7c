"""How a person ends the demo."""

import signal
import sys
from types import FrameType


class End:
    """A person's wish to end: SIGINT or SIGTERM, once."""

    def __init__(self) -> None:
        self._asked = False

    def listen(self) -> None:
        """From here on a signal is a KeyboardInterrupt."""
        signal.signal(signal.SIGTERM, self._interrupt)
        signal.signal(signal.SIGINT, self._interrupt)

    def check(self) -> None:
        """Raise the KeyboardInterrupt that got lost: one that hits a finalizer ends there, with a traceback."""
        if self._asked:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """From here on the end is under way: a second Ctrl-C must not leave half of it running."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        self.hold()
        self._asked = True
        print("stopping all processes", file=sys.stderr, flush=True)
        raise KeyboardInterrupt

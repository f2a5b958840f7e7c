"""A stop request from a signal. It is stored until it is checked, because a handler that raises would break Spark."""

import signal
from types import FrameType


class StoppedError(Exception):
    """A stop was requested before the end; committed work is complete."""


class Stop:
    """Set by SIGTERM and SIGINT after `listen`."""

    def __init__(self) -> None:
        self.requested = False

    def listen(self) -> None:
        """Install handlers for both signals."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def go_on(self) -> bool:
        """Whether no stop was requested."""
        return not self.requested

    def check(self) -> None:
        """Raise if a stop was requested.

        Raises:
            StoppedError: it was.
        """
        if self.requested:
            raise StoppedError

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True

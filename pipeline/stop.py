"""A wish to stop, from a signal: kept until somebody looks, for a handler that raises would tear Spark apart."""

import signal
from types import FrameType


class StoppedError(Exception):
    """The user asked to stop before the end; what counts is whole, and what was not done stays to be done."""


class Stop:
    """Set by SIGTERM and SIGINT once `listen` was called."""

    def __init__(self) -> None:
        self.requested = False

    def listen(self) -> None:
        """Take both signals of this process."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def go_on(self) -> bool:
        """Whether nobody asked to stop."""
        return not self.requested

    def check(self) -> None:
        """Go no further once a stop is wanted.

        Raises:
            StoppedError: it is.
        """
        if self.requested:
            raise StoppedError

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True

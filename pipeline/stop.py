"""A wish to stop, from a signal: kept until somebody looks, for a handler that raises would tear Spark apart."""

import signal
from types import FrameType


class Stop:
    """Set by SIGTERM and SIGINT once `listen` was called."""

    def __init__(self) -> None:
        self.wanted = False

    def listen(self) -> None:
        """Take both signals of this process."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.signal(signal.SIGINT, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.wanted = True

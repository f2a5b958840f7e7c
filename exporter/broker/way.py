"""How long the way to a broker and back takes, which costs the broker nothing.

A broker far away, or behind a slow proxy, answers everything late: without this its smallest list would look dear, and
be read seldom.
"""

import threading

from exporter.broker.least import Least

REQUEST_SECONDS = 0.001
"""What the smallest request takes of a broker nearby; that is no way."""

LONGEST_SECONDS = 0.3
"""Round the earth and back. A broker whose every answer takes longer is slow, and to be asked less."""

_SPAN_SECONDS = 60.0
_TELLING = 10
"""Answers that it takes before one of them counts as quick."""


class Way:
    """The quickest answer of the last minute or two, whatever was asked. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._quickest = Least(_SPAN_SECONDS)

    def note(self, seconds: float, now: float) -> None:
        """An answer that took so long.

        Args:
            seconds: from the request to the end of the answer.
            now: seconds of the monotonic clock.
        """
        with self._lock:
            self._quickest.note(seconds, now)
            self._count += 1

    @property
    def seconds(self) -> float:
        """Of one request; 0 while too little is known."""
        with self._lock:
            known = self._quickest.value if self._count >= _TELLING else 0.0
        return max(0.0, min(known - REQUEST_SECONDS, LONGEST_SECONDS))

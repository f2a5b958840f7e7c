"""A bucket of tokens."""

import threading

from ackscope.clock import Clock


class RateLimiter:
    """Lets `burst` requests in at once, and then one an interval.

    Args:
        interval: seconds until a token comes back; 0 lets all in.
        burst: how many tokens there are at most.
        clock: tells the time.
    """

    def __init__(self, interval: float, burst: int, clock: Clock) -> None:
        self._interval, self._burst, self._clock = interval, burst, clock
        self._tokens = float(burst)
        self._at = clock.now()
        self._lock = threading.Lock()

    def admit(self) -> bool:
        """Take a token; False where there is none."""
        if not self._interval:
            return True
        with self._lock:
            now = self._clock.now()
            self._tokens = min(float(self._burst), self._tokens + now.since(self._at) / self._interval)
            self._at = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True

"""A token-bucket rate limiter."""

import threading

from ackscope.clock import Clock


class RateLimiter:
    """Admits `burst` requests at once, then one per interval.

    Args:
        interval: seconds until a token is added; 0 disables the limit.
        burst: size of the bucket.
        clock: tells the time.
    """

    def __init__(self, interval: float, burst: int, clock: Clock) -> None:
        self._interval, self._burst, self._clock = interval, burst, clock
        self._tokens = float(burst)
        self._at = clock.now()
        self._lock = threading.Lock()

    def admit(self) -> bool:
        """Take a token. Returns False if there is none."""
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

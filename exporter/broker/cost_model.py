"""Estimates for one broker: the cost of a poll, the round-trip time, and the timeout of a request.

Costs are measured from here, as elapsed time. A busy machine, a long network path and an overloaded broker all make an
answer slower without making it more expensive for the broker, so the estimates rest on the fastest recent samples.
"""

import threading

LOAD_FACTOR = 4.0
"""A slow broker is polled at most this many times less often than when it was fast."""

MAX_REQUEST_SECONDS, MAX_BYTE_SECONDS = 0.0015, 0.25e-6
"""Upper bound on a broker's CPU time per request and per byte of the answer.

Measured: 0.6 to 1.4 ms and 0.08 to 0.23 us (3.10.8 and 4.3.6 with 30 queues, 4.3.6 with 10,000).
"""

MIN_REQUEST_SECONDS = 0.001
"""Seconds that a nearby broker takes for the smallest request. They are not part of the round trip."""

MAX_RTT_SECONDS = 0.3
"""Longest plausible round trip, once around the world. If every answer takes longer, the broker itself is slow."""

MAX_TIMEOUT_SECONDS = 60.0

_COST_WINDOW_SECONDS = 1800.0
_RTT_WINDOW_SECONDS = 60.0
_RTT_MIN_SAMPLES = 10
_TIMEOUT_FACTOR = 3.0
"""The next timeout is this multiple of the latest response time."""

_TIMEOUT_REACHED = 0.9
"""Share of the timeout after which a failure counts as a timeout; connecting has a shorter limit of its own."""


class SlidingMin:
    """Minimum of the samples of the last one to two windows. Not thread-safe.

    Args:
        window: seconds.
    """

    def __init__(self, window: float) -> None:
        self._window = window
        self._started_at = float("-inf")
        self._current = self._previous = float("inf")

    def record(self, value: float, now: float) -> None:
        """Add a sample; `now` is in seconds of the monotonic clock."""
        if now - self._started_at >= self._window:
            recent = now - self._started_at < 2 * self._window
            self._previous = self._current if recent else float("inf")
            self._started_at, self._current = now, float("inf")
        self._current = min(self._current, value)

    @property
    def value(self) -> float:
        """Minimum of the samples; infinite without a sample."""
        return min(self._current, self._previous)


class CostBaseline:
    """Upper bound on the cost of a poll, from the lowest cost for its size in the last 30 to 60 minutes.

    Without it the budget would stretch the intervals to minutes just when the broker, or the machine we run on, is
    overloaded and fresh data matters most.

    Args:
        cost_follows_size: whether a short answer is cheap for the broker. False if it computes much for few bytes.
    """

    def __init__(self, *, cost_follows_size: bool = True) -> None:
        self._cost_follows_size = cost_follows_size
        self._lowest_ratio = SlidingMin(_COST_WINDOW_SECONDS)
        self._expected: float | None = None

    def record(self, cost: float, requests: int, received: int, now: float) -> None:
        """Add a poll.

        Args:
            cost: seconds of the broker's time.
            requests: number of requests it took.
            received: bytes of the answers.
            now: seconds of the monotonic clock.
        """
        self._expected = requests * MAX_REQUEST_SECONDS + received * MAX_BYTE_SECONDS
        if self._expected:
            self._lowest_ratio.record(cost / self._expected, now)

    def max_cost(self) -> float:
        """Highest plausible cost of a poll of the latest size, in seconds; infinite before the first."""
        if not self._expected:
            return float("inf")
        factor = LOAD_FACTOR * self._lowest_ratio.value
        return self._expected * (min(factor, 1.0) if self._cost_follows_size else factor)


class RttEstimator:
    """Round-trip time to a broker: the fastest answer of the last one to two minutes. Thread-safe.

    The round trip costs the broker nothing. Without this estimate the smallest list of a distant broker would look
    expensive and be polled rarely.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples = 0
        self._fastest = SlidingMin(_RTT_WINDOW_SECONDS)

    def record(self, seconds: float, now: float) -> None:
        """Add a response time.

        Args:
            seconds: from the request to the end of the answer.
            now: seconds of the monotonic clock.
        """
        with self._lock:
            self._fastest.record(seconds, now)
            self._samples += 1

    @property
    def seconds(self) -> float:
        """The round-trip time of one request; 0 before there are enough samples."""
        with self._lock:
            fastest = self._fastest.value if self._samples >= _RTT_MIN_SAMPLES else 0.0
        return max(0.0, min(fastest - MIN_REQUEST_SECONDS, MAX_RTT_SECONDS))


class AdaptiveTimeout:
    """Timeout by path, for answers that grow with the broker: totals of 50,000 queues, or all bindings.

    A broker goes on computing an answer after its client has disconnected. Giving up and retrying makes it repeat the
    work, and such a list would never arrive: 50,000 queues took 48 s on a busy machine (4.3.6).

    Args:
        minimum: the configured timeout in seconds, used at first and as long as it is enough.
    """

    def __init__(self, minimum: float) -> None:
        self._minimum, self._maximum = minimum, max(minimum, MAX_TIMEOUT_SECONDS)
        self._timeouts: dict[str, float] = {}

    def timeout_for(self, path: str) -> float:
        """Timeout of the next request, in seconds."""
        return self._timeouts.get(path, self._minimum)

    def record_success(self, path: str, seconds: float) -> None:
        """Adapt to an answer that took `seconds`."""
        self._timeouts[path] = max(self._minimum, min(self._maximum, _TIMEOUT_FACTOR * seconds))

    def record_failure(self, path: str, seconds: float) -> None:
        """Adapt to a request that failed after `seconds`. After a timeout the next request gets the longest timeout."""
        if seconds >= _TIMEOUT_REACHED * self.timeout_for(path):
            self._timeouts[path] = self._maximum

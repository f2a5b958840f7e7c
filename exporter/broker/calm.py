"""What a reading can cost at most, for its size: a broker that is overloaded must not become invisible.

Nor one that is watched from a busy machine. Costs are measured as time from here, but an answer that waits for a
processor takes longer and costs the broker no more: where all of them wait, the budget would have each family read
every few minutes, just when somebody wants to know.
"""

from exporter.broker.least import Least

SLOWED = 4.0
"""A broker that is slow is asked so many times less often than while it was not, and no less than that."""

REQUEST_SECONDS, BYTE_SECONDS = 0.0015, 0.25e-6
"""Of a broker's processors, at most, for a request and for each byte of its answer.

Seen: 0.6 to 1.4 ms, and 0.08 to 0.23 us (3.10.8 and 4.3.6 with thirty queues, 4.3.6 with 10,000).
"""

_SPAN_SECONDS = 1800.0


class Calm:
    """The least cost for its size, of the last half hour to hour.

    Args:
        plain: the answer tells by its size what it costs; not so where much is counted for few words.
    """

    def __init__(self, *, plain: bool = True) -> None:
        self._plain = plain
        self._least = Least(_SPAN_SECONDS)
        self._usual: float | None = None

    def note(self, cost: float, requests: int, received: int, now: float) -> None:
        """Take in a reading.

        Args:
            cost: seconds of the broker's time.
            requests: that it took.
            received: bytes of the answers.
            now: seconds of the monotonic clock.
        """
        self._usual = requests * REQUEST_SECONDS + received * BYTE_SECONDS
        if self._usual:
            self._least.note(cost / self._usual, now)

    def most(self) -> float:
        """Seconds that a reading of the latest size counts for at most; infinite before the first."""
        if not self._usual:
            return float("inf")
        factor = SLOWED * self._least.value
        return self._usual * (min(factor, 1.0) if self._plain else factor)

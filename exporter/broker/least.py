"""The least of what was seen lately."""


class Least:
    """The least value of the last one to two spans; what was seen earlier is forgotten. Not for several threads.

    Args:
        span: seconds.
    """

    def __init__(self, span: float) -> None:
        self._span = span
        self._began = float("-inf")
        self._least = self._before = float("inf")

    def note(self, value: float, now: float) -> None:
        """Take in a value; `now` is seconds of the monotonic clock."""
        if now - self._began >= self._span:
            recent = now - self._began < 2 * self._span
            self._before = self._least if recent else float("inf")
            self._began, self._least = now, float("inf")
        self._least = min(self._least, value)

    @property
    def value(self) -> float:
        """It; infinite where nothing was seen."""
        return min(self._least, self._before)

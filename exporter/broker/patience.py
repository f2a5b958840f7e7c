"""How long an answer is waited for that grows with the broker: the totals of 50,000 queues, or all bindings.

A broker goes on making an answer after its client has left. To give up and ask again has it do the same work for
nothing, and such a list would never be seen: of 50,000 queues, on a machine with much else to do, it took 48 s (4.3.6).
"""

LONGEST_SECONDS = 60.0

_TIMES = 3.0
"""Times as long as it took last, it is waited for."""

_ALL = 0.9
"""Share of the limit after which a failure means that it was too short: connecting has a shorter one of its own."""


class Patience:
    """By path, the seconds for one request: `least` at first and while that is enough.

    Args:
        least: the time limit of the settings.
    """

    def __init__(self, least: float) -> None:
        self._least, self._most = least, max(least, LONGEST_SECONDS)
        self._limits: dict[str, float] = {}

    def limit(self, path: str) -> float:
        """Seconds that the next answer is waited for."""
        return self._limits.get(path, self._least)

    def answered(self, path: str, took: float) -> None:
        """An answer came."""
        self._limits[path] = max(self._least, min(self._most, _TIMES * took))

    def failed(self, path: str, took: float) -> None:
        """None came; where time ran out, the next one is given the most."""
        if took >= _ALL * self.limit(path):
            self._limits[path] = self._most

"""Ack frames that arrive together: how the broker batches its confirms.

A broker that gathers messages for one write to disk confirms them together. Frames of one flush come in one or
few reads, tens of microseconds apart; flushes are as far apart as the batches, milliseconds or more. So frames belong
to one burst when less than `GAP` lies between them. Batches closer together than that cannot be told apart from
outside and show as one.
"""

from typing import NamedTuple

GAP = 0.001
"""Seconds without a frame that end a burst."""


class Burst(NamedTuple):
    """One burst; times in seconds of the monotonic clock."""

    at: float
    frames: int
    multiple_frames: int
    messages: int
    interval: float | None
    span: float


class BurstJoiner:
    """Joins the ack frames of one channel."""

    def __init__(self, gap: float = GAP) -> None:
        self._gap = gap
        self._before: float | None = None
        self._first = self._last = 0.0
        self._frames = self._multiple = self._messages = 0

    def frame(self, at: float, messages: int, *, multiple: bool) -> Burst | None:
        """Enter a frame; the burst that it ended by coming late, if any."""
        ended = self.flush(at)
        if not self._frames:
            self._first = at
        self._last = at
        self._frames += 1
        self._multiple += multiple
        self._messages += messages
        return ended

    def flush(self, now: float) -> Burst | None:
        """The burst that is over by now, if any."""
        if not self._frames or now - self._last < self._gap:
            return None
        interval = None if self._before is None else self._first - self._before
        burst = Burst(self._first, self._frames, self._multiple, self._messages, interval, self._last - self._first)
        self._before = self._first
        self._frames = self._multiple = self._messages = 0
        return burst

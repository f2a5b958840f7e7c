"""Joins ack frames that arrive together into bursts, which show how the broker batches its confirms.

A broker that collects messages for one write to disk confirms them together. The frames of one flush arrive in one or a
few reads, tens of microseconds apart. Flushes are as far apart as the batches, milliseconds or more. So frames belong
to one burst if they are less than `GAP` apart. Batches that are closer together count as one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from probes.confirm_ledger import Settled

GAP = 0.001
"""Seconds without a frame after which a burst ends."""


class Burst(NamedTuple):
    """One burst. Times are in seconds of the monotonic clock.

    Attributes:
        messages: number of messages that it confirmed.
        interval: seconds since the first frame of the previous burst on this channel; None for the first.
        span: seconds from its first to its last frame.
        least, most: shortest and longest latency of its messages, in seconds; None if it settled none.
        slope: additional seconds of latency of a message for each second that it was sent earlier, within the burst;
            None for fewer than `_FEWEST` messages, or if all were sent at once.
        full: whether the limit of outstanding messages held back messages since the previous burst.
    """

    at: float
    frames: int
    multiple_frames: int
    messages: int
    interval: float | None
    span: float
    least: float | None = None
    most: float | None = None
    slope: float | None = None
    full: bool = False


_FEWEST = 4
_AT_ONCE = 1e-12


class _Latencies:
    """Sums for a linear fit of the latencies of one burst against send times, in constant memory."""

    __slots__ = ("_base", "_count", "_x", "_xx", "_xy", "_y", "least", "most")

    def __init__(self) -> None:
        self.least: float | None = None
        self.most: float | None = None
        self._count = 0
        self._base = self._x = self._y = self._xx = self._xy = 0.0

    def add(self, sent: float, latency: float) -> None:
        if self.least is None or self.most is None:
            self.least = self.most = latency
            self._base = sent
        self.least, self.most = min(self.least, latency), max(self.most, latency)
        earlier = self._base - sent
        self._count += 1
        self._x += earlier
        self._y += latency
        self._xx += earlier * earlier
        self._xy += earlier * latency

    @property
    def slope(self) -> float | None:
        """Slope of the least-squares line."""
        count = self._count
        spread = self._xx - self._x * self._x / count if count >= _FEWEST else 0.0
        return None if spread < _AT_ONCE else (self._xy - self._x * self._y / count) / spread


class BurstJoiner:
    """Joins the ack frames of one channel into bursts."""

    def __init__(self, gap: float = GAP) -> None:
        self._gap = gap
        self._before: float | None = None
        self._first = self._last = 0.0
        self._frames = self._multiple = self._messages = 0
        self._latencies = _Latencies()
        self._full = False

    def full(self) -> None:
        """Note that the limit of outstanding messages holds messages back."""
        self._full = True

    def frame(self, at: float, messages: int, *, multiple: bool, settled: Sequence[Settled] = ()) -> Burst | None:
        """Add a frame and the messages that it settled. Returns the previous burst if this frame begins a new one."""
        ended = self.flush(at)
        if not self._frames:
            self._first = at
        self._last = at
        self._frames += 1
        self._multiple += multiple
        self._messages += messages
        for message in settled:
            self._latencies.add(message.sent, at - message.sent)
        return ended

    def flush(self, now: float) -> Burst | None:
        """Return the burst that has ended by `now`, if any."""
        if not self._frames or now - self._last < self._gap:
            return None
        latencies = self._latencies
        burst = Burst(
            at=self._first,
            frames=self._frames,
            multiple_frames=self._multiple,
            messages=self._messages,
            interval=None if self._before is None else self._first - self._before,
            span=self._last - self._first,
            least=latencies.least,
            most=latencies.most,
            slope=latencies.slope,
            full=self._full,
        )
        self._before = self._first
        self._frames = self._multiple = self._messages = 0
        self._latencies = _Latencies()
        self._full = False
        return burst

"""How far the clock of a broker is ahead of ours, from the `Date` of its responses (RFC 9110, 6.6.1).

The broker reports when a channel became idle and when a connection was opened by its own clock. Compared with ours,
these times are wrong by the difference: if ours is 15 minutes ahead, every pause of a consumer looks like 15 minutes
without an acknowledgement.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from ackscope.clock import Clock, SystemClock

TOLERATED_SECONDS = 2.0
"""Smaller differences are not corrected: they are within the error of the measurement."""

_DATE_ERROR_SECONDS = 2.0
"""A `Date` has whole seconds, and RabbitMQ renews it once a second (`cowboy_clock`)."""

_TIMES = {"channels": "idle_since", "connections": "connected_at"}
"""Family -> time of its objects by the broker's clock."""


class ClockOffset:
    """The difference of two clocks. Thread-safe; shared by the clients of one broker.

    Each response bounds the difference; the bounds of all responses are combined. Responses that contradict earlier
    ones mean that the broker's clock was set, so they count alone. It is measured with our monotonic clock, so that it
    stays right if our wall clock is set, also between a response and its use.

    Args:
        clock: our own clock.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        # The broker's wall clock, less our monotonic clock.
        self._bounds: tuple[float, float] | None = None
        self._seconds = 0.0

    def record(self, headers: Mapping[str, str], sent: float, received: float) -> None:
        """Add a response.

        Args:
            headers: its headers, by lower-case name or independent of case.
            sent: when it was requested, in seconds of the monotonic clock.
            received: the same when its headers had arrived.
        """
        # A cache returns the date of its original.
        if "date" not in headers or "age" in headers:
            return
        try:
            moment = parsedate_to_datetime(headers["date"])
        except ValueError:
            return
        date = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        low, high = date - received, date + _DATE_ERROR_SECONDS - sent
        with self._lock:
            if self._bounds is not None and max(low, self._bounds[0]) <= min(high, self._bounds[1]):
                low, high = max(low, self._bounds[0]), min(high, self._bounds[1])
            self._bounds = low, high

    @property
    def seconds(self) -> float | None:
        """How far the broker's clock is ahead; negative if it is behind, 0 within the error, None if unknown."""
        with self._lock:
            if self._bounds is None:
                return None
            now = self._clock.now()
            ours = now.wall - now.mono
            low, high = self._bounds[0] - ours, self._bounds[1] - ours
            # It stays as long as it fits, so that the times of objects that do not change do not change either.
            if not low - TOLERATED_SECONDS <= self._seconds <= high + TOLERATED_SECONDS:
                self._seconds = 0.0 if low - TOLERATED_SECONDS <= 0.0 <= high + TOLERATED_SECONDS else (low + high) / 2
            return self._seconds

    def in_our_time(self, family: str, value: Any) -> Any:
        """Return the objects of a family with the broker's times by our clock."""
        ahead, name = self.seconds, _TIMES.get(family)
        if not ahead or name is None:
            return value
        times = [getattr(each, name) for each in value]
        return tuple(
            each if moment is None else replace(each, **{name: moment - ahead})
            for each, moment in zip(value, times, strict=True)
        )

"""Clocks, which are injected so that tests can set the time.

Durations are measured with the monotonic clock only; the wall clock is for dates.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

_READ_ERROR = 1.0
"""Largest difference in seconds between two clocks that does not mean that one of them was set."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on both clocks.

    Attributes:
        wall: seconds since 1970-01-01 UTC; may jump.
        mono: seconds of the monotonic clock of this process; only differences are meaningful.
    """

    wall: float
    mono: float

    def since(self, earlier: "Instant") -> float:
        """Seconds from `earlier` to this moment, by the monotonic clock."""
        return self.mono - earlier.mono

    def wall_clock_step(self, earlier: "Instant") -> float:
        """By how many seconds the wall clock was set between `earlier` and this moment; 0 within the error.

        The two clocks are read one after the other, and a busy machine may interrupt that.
        """
        seconds = (self.wall - self.mono) - (earlier.wall - earlier.mono)
        return seconds if abs(seconds) > _READ_ERROR else 0.0

    def shifted(self, seconds: float) -> "Instant":
        """The same moment by a wall clock that was set forward by so many seconds (back if negative)."""
        return Instant(wall=self.wall + seconds, mono=self.mono)

    @property
    def utc(self) -> datetime:
        """The wall time, in UTC."""
        return _utc(self.wall)

    def iso(self) -> str:
        """The wall time as ISO 8601 in UTC, to the second."""
        return iso(self.wall)


def iso(wall: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the second.

    A time before 1970 or after 9999, which only a damaged number of a broker or a bundle gives, is the first or the
    last of them.
    """
    return _utc(wall).strftime("%Y-%m-%dT%H:%M:%SZ")


_LAST = 253_402_300_799.0
"""The last second of 9999, which is the last year that has a date."""


def has_date(wall: float) -> bool:
    """Whether a time, seconds since 1970, is from 1970 to 9999, so that it can be shown as a date."""
    return 0.0 <= wall <= _LAST


def _utc(wall: float) -> datetime:
    # In this order, what is not a number is the first second.
    return datetime.fromtimestamp(max(0.0, min(wall, _LAST)), UTC)


def stamp(moment: datetime) -> float:
    """Seconds since 1970 of a moment. A moment without a zone is in UTC, as Spark and Arrow return it."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Clock(Protocol):
    """The interface of a clock."""

    def now(self) -> Instant:
        """The present moment."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> Instant:
        """The present moment, both clocks read together."""
        return Instant(wall=time.time(), mono=time.monotonic())

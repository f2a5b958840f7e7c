"""Clocks, which are injected so that tests can set the time.

Durations are measured with the monotonic clock only; the wall clock is for dates.
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


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

    @property
    def utc(self) -> datetime:
        """The wall time, in UTC."""
        return datetime.fromtimestamp(self.wall, UTC)

    def iso(self) -> str:
        """The wall time as ISO 8601 in UTC, to the second."""
        return iso(self.wall)


def iso(wall: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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

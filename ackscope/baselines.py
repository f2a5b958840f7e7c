"""Baseline bands of objects by hour of the week: computed by the pipeline, read by the exporter for diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

HOUR_OF_WEEK, HOUR_OF_DAY, NOT_YET = "hour-of-week", "hour-of-day", "not-yet"
"""What a band is computed from: the same hour of past weeks or of past days. `NOT_YET`: too few of either."""

Subject = tuple[str, str, str, str]
"""(kind, vhost, name, measure) as in the table `baselines`."""


@dataclass(frozen=True, slots=True)
class Band:
    """The usual range of a measure.

    Attributes:
        low, middle, high: in the unit of the measure; values outside `low` to `high` are unusual.
        scope: `HOUR_OF_WEEK` or `HOUR_OF_DAY`.
        values: number of hours that it was computed from.
    """

    low: float
    middle: float
    high: float
    scope: str
    values: int


DAYS_NEEDED = 3
"""Minimum number of days with a value at an hour of the day for a band."""


class NoBand(StrEnum):
    """The reason why there is no band."""

    FEW_DAYS = "few_days"
    """The history of the object is shorter than `DAYS_NEEDED`."""
    NO_HISTORY_OF_OBJECT = "no_history_of_object"
    NO_HISTORY_READ = "no_history_read"
    """The exporter reads no rollups of the cluster (`history.rollups`)."""
    NO_BANDS = "no_bands"
    """The pipeline has not computed any band of the cluster."""
    HISTORY_ENDED = "history_ended"
    """The history ended too long ago, because the pipeline stopped."""
    OTHER_HOUR = "other_hour"
    """Only the bands of another hour of the week have been read."""
    UNKNOWN = "unknown"
    """The file does not have the reason."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """A missing band with the reason.

    Attributes:
        days: days of history so far (FEW_DAYS), or days since the history ended (HISTORY_ENDED).
    """

    reason: NoBand
    days: int = 0


@dataclass(frozen=True, slots=True)
class Baselines:
    """The bands of one cluster for one hour of the week.

    Attributes:
        hour_of_week: 0 is Monday 00:00 to 01:00 UTC.
        made_at: end of the history that they were computed from, seconds since 1970; None without bands.
        bands: by subject and measure; objects that are missing here have no history.
    """

    hour_of_week: int = 0
    made_at: float | None = None
    bands: Mapping[Subject, Band | NotYet] = field(default_factory=dict)

    def outdated(self, wall: float, oldest: float) -> NotYet | None:
        """The reason why no band may be used at `wall` (seconds since 1970); None if they may be used.

        `oldest` is their maximum age in seconds.
        """
        if self.made_at is None:
            return None
        age = wall - self.made_at
        if age > oldest:
            return NotYet(NoBand.HISTORY_ENDED, round(age / 86400))
        # The bands of the previous hour are valid, too: those of a new hour are read some time after it began.
        if (hour_of_week(wall) - self.hour_of_week) % 168 > 1:
            return NotYet(NoBand.OTHER_HOUR)
        return None

    def of(self, kind: str, vhost: str, name: str, measure: str) -> Band | NotYet:
        """The band of a measure of an object, or why there is none."""
        return self.bands.get((kind, vhost, name, measure), NotYet(NoBand.NO_HISTORY_OF_OBJECT))


def hour_of_week(wall: float) -> int:
    """The hour of the week of a moment, seconds since 1970; 1970-01-01 was a Thursday."""
    return (int(wall // 3600) + 3 * 24) % 168

"""What is usual for an object at an hour of the week: made by the pipeline, read by the exporter for diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass, field

HOUR_OF_WEEK, HOUR_OF_DAY, NOT_YET = "hour-of-week", "hour-of-day", "not-yet"
"""What a band was made of: the same hour of past weeks, of past days, or too little of either."""

Subject = tuple[str, str, str, str]
"""(kind, vhost, name, measure) as in the table `baselines`."""


@dataclass(frozen=True, slots=True)
class Band:
    """What is usual.

    Attributes:
        low, middle, high: in the unit of the measure; outside of `low` to `high` is unusual.
        scope: `HOUR_OF_WEEK` or `HOUR_OF_DAY`.
        values: hours that it was made of.
    """

    low: float
    middle: float
    high: float
    scope: str
    values: int


@dataclass(frozen=True, slots=True)
class NotYet:
    """There is too little history.

    Attributes:
        reason: such as "3 of 7 days".
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Baselines:
    """The bands of one cluster for one hour of the week.

    Attributes:
        hour_of_week: 0 is Monday 00:00 to 01:00 UTC.
        made_at: until when what they were made of reaches, seconds since 1970; None without any.
        bands: by subject and measure; what is not in it has no history at all.
    """

    hour_of_week: int = 0
    made_at: float | None = None
    bands: Mapping[Subject, Band | NotYet] = field(default_factory=dict)

    def outdated(self, wall: float, oldest: float) -> NotYet | None:
        """Why no band may be used at `wall` (seconds since 1970), if they may be `oldest` s old; None: any may."""
        if self.made_at is None:
            return None
        age = wall - self.made_at
        if age > oldest:
            return NotYet(f"the history ends {age / 86400:.0f} days ago")
        # The bands of an hour may be read somewhat after it began.
        if (hour_of_week(wall) - self.hour_of_week) % 168 > 1:
            return NotYet("only another hour of the week is read")
        return None

    def of(self, kind: str, vhost: str, name: str, measure: str) -> Band | NotYet:
        """The band of a measure of an object, or why there is none."""
        return self.bands.get((kind, vhost, name, measure), NotYet("no history of it"))


def hour_of_week(wall: float) -> int:
    """The hour of the week of a moment, seconds since 1970, which began on a Thursday."""
    return (int(wall // 3600) + 3 * 24) % 168

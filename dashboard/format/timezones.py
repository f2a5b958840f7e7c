"""In which zone times are told: UTC, or that of the reader. Pure."""

from dataclasses import dataclass
from datetime import UTC as UTC_INFO
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo

LOCAL = "local"
"""In an address: the zone of whoever reads it."""


@dataclass(frozen=True, slots=True)
class Zone:
    """One zone, by the name that the tz database has for it."""

    name: str = "UTC"

    @property
    def info(self) -> tzinfo:
        """As `datetime` wants it."""
        return UTC_INFO if self.name == "UTC" else ZoneInfo(self.name)

    def at(self, moment: float | datetime) -> datetime:
        """A moment (seconds since 1970, or any aware time) as clocks of this zone show it."""
        if isinstance(moment, datetime):
            return moment.astimezone(self.info)
        return datetime.fromtimestamp(moment, self.info)

    def short(self, moment: float | datetime) -> str:
        """What the zone is called at a moment: UTC, CEST; `UTC-03` or `UTC+05:45` where it has no word of its own."""
        name = self.at(moment).strftime("%Z")
        if name[:1] not in {"+", "-"}:
            return name
        return f"UTC{name}" if len(name) <= 3 else f"UTC{name[:3]}:{name[3:5]}"

    def instant(self, shown: datetime) -> datetime:
        """The moment, in UTC, at which clocks of this zone show this (naive) time.

        Of an hour that is there twice it is the first; a time that clocks leave out is that of a clock nobody moved.
        """
        return shown.replace(tzinfo=self.info).astimezone(UTC_INFO)

    def steady(self, moment: datetime) -> timezone:
        """The offset that holds at a moment, for an axis: all along it an hour is an hour, though clocks be moved."""
        offset = self.at(moment).utcoffset()
        return UTC_INFO if self.name == "UTC" or offset is None else timezone(offset, self.short(moment))


UTC = Zone()


def find(name: str | None) -> Zone | None:
    """The zone of this name; None where there is no such zone."""
    if name is None or len(name) > 64:
        return None
    if name.upper() in {"UTC", "ETC/UTC"}:
        return UTC
    try:
        return Zone(ZoneInfo(name).key)
    except (LookupError, ValueError, OSError):
        return None


def chosen(asked: str | None, browsers: str | None) -> Zone:
    """The zone that an address asks for: `local`, or a name; UTC where it asks for none, or for one that is not known.

    Args:
        asked: `tz` of the address.
        browsers: the name of the reader's zone, as the browser tells it.
    """
    return find(browsers if asked == LOCAL else asked) or UTC


def twice(moment: datetime) -> bool:
    """Whether clocks show this time twice, as they do when they are put back."""
    return moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()

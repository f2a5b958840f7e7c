"""The time zone of the page: UTC, or the reader's. Pure."""

from dataclasses import dataclass
from datetime import UTC as UTC_INFO
from datetime import datetime, timezone, tzinfo
from zoneinfo import ZoneInfo

LOCAL = "local"
"""Value of `?tz=` for the zone of the reader's browser."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone, by its name in the tz database."""

    name: str = "UTC"

    @property
    def info(self) -> tzinfo:
        """The zone as a `tzinfo`."""
        return UTC_INFO if self.name == "UTC" else ZoneInfo(self.name)

    def local(self, moment: float | datetime) -> datetime:
        """A moment (seconds since 1970, or an aware datetime) in this zone."""
        if isinstance(moment, datetime):
            return moment.astimezone(self.info)
        return datetime.fromtimestamp(moment, self.info)

    def abbreviation(self, moment: float | datetime) -> str:
        """Abbreviation at a moment: UTC, CEST; `UTC-03` or `UTC+05:45` for a zone without one."""
        name = self.local(moment).strftime("%Z")
        if name[:1] not in {"+", "-"}:
            return name
        return f"UTC{name}" if len(name) <= 3 else f"UTC{name[:3]}:{name[3:5]}"

    def to_utc(self, shown: datetime) -> datetime:
        """A naive local time of this zone, in UTC.

        In the hour that a clock change repeats, the first occurrence; in the skipped hour, with the old offset.
        """
        return shown.replace(tzinfo=self.info).astimezone(UTC_INFO)

    def fixed_offset(self, moment: datetime) -> timezone:
        """The UTC offset at a moment, for a chart axis, whose hours are then equally long even over a clock change."""
        offset = self.local(moment).utcoffset()
        return UTC_INFO if self.name == "UTC" or offset is None else timezone(offset, self.abbreviation(moment))


UTC = Zone()


def find(name: str | None) -> Zone | None:
    """The zone with this name; None if it does not exist."""
    if name is None or len(name) > 64:
        return None
    if name.upper() in {"UTC", "ETC/UTC"}:
        return UTC
    try:
        return Zone(ZoneInfo(name).key)
    except (LookupError, ValueError, OSError):
        return None


def selected(parameter: str | None, browser_zone: str | None) -> Zone:
    """The zone of the page's address; UTC if it has none, or an unknown one.

    Args:
        parameter: `?tz=` of the address: `local` or a name.
        browser_zone: name of the browser's zone.
    """
    return find(browser_zone if parameter == LOCAL else parameter) or UTC


def is_ambiguous(moment: datetime) -> bool:
    """Whether this local time occurs twice, because clocks are set back."""
    return moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()

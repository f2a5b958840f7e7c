"""Parse points in time from users, and format times and durations for them."""

import re
from datetime import UTC, datetime, timedelta

from ackscope.cli import seconds
from ackscope.errors import UsageError
from ackscope.format import whole_minutes

_CLOCK_TIME = re.compile(r"(\d{1,2}):(\d{2})Z?")


def parse_moment(text: str, now: float, option: str = "--at") -> float:
    """Seconds since 1970 for `2026-03-01T12:04`, `12:04`, `30m ago` or `now`; UTC.

    `12:04` is of today, or of yesterday if today's is still to come.

    Raises:
        UsageError: it is none of these, or in the future.
    """
    parsed = _read(text.strip(), now)
    if parsed is None:
        raise UsageError(f"invalid {option} {text!r}; use 2026-03-01T12:04 (UTC), 12:04, '30m ago' or now")
    if parsed > now:
        raise UsageError(f"{option} {text!r} is in the future; use a time in the past")
    return parsed


def _read(text: str, now: float) -> float | None:
    if text == "now":
        return now
    clock = _CLOCK_TIME.fullmatch(text)
    try:
        if text.endswith(" ago"):
            return now - seconds(text.removesuffix(" ago"))
        if clock:
            today = datetime.fromtimestamp(now, UTC)
            at = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            return (at if at <= today else at - timedelta(days=1)).timestamp()
        parsed = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def format_duration(duration: float) -> str:
    """A duration in its two largest units: 42 s, 7 min, 3 h 5 min, 2 d 4 h, 40 d."""
    rounded = round(duration)
    if rounded < 90:
        return f"{rounded} s"
    minutes = round(rounded / 60)
    if minutes < 48 * 60:
        return whole_minutes(minutes)
    days, rest = divmod(round(minutes / 60), 24)
    return f"{days} d {rest} h" if rest and days < 14 else f"{days} d"


def format_minute(wall: float, same_day_as: float | None = None) -> str:
    """A minute in UTC; without its date if it is that of `same_day_as`."""
    at = datetime.fromtimestamp(wall, UTC)
    if same_day_as is not None and datetime.fromtimestamp(same_day_as, UTC).date() == at.date():
        return f"{at:%H:%M}"
    return f"{at:%Y-%m-%d %H:%M}"

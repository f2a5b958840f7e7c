"""Moments as people write them, and spans as people read them."""

import re
from datetime import UTC, datetime, timedelta

from ackscope.cli import seconds
from ackscope.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})Z?")


def moment(text: str, now: float, option: str = "--at") -> float:
    """Seconds since 1970 of `2026-03-01T12:04`, `12:04` (the last time it was that late), `30m ago` or `now`; UTC.

    Raises:
        UsageError: it is none of these, or lies in the future.
    """
    wanted = _read(text.strip(), now)
    if wanted is None:
        raise UsageError(
            f"{option} {text!r} is no moment; write 2026-03-01T12:04 (UTC), 12:04, or how long ago: '30m ago'"
        )
    if wanted > now:
        raise UsageError(f"{option} {text!r} lies in the future; the answers are about what was")
    return wanted


def _read(text: str, now: float) -> float | None:
    if text == "now":
        return now
    clock = _CLOCK.fullmatch(text)
    try:
        if text.endswith(" ago"):
            return now - seconds(text.removesuffix(" ago"))
        if clock:
            today = datetime.fromtimestamp(now, UTC)
            at = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            return (at if at <= today else at - timedelta(days=1)).timestamp()
        told = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).timestamp()


def long(seconds_long: float) -> str:
    """A duration in its two largest units: 42 s, 7 min, 3 h 5 min, 2 d 4 h, 40 d."""
    whole = round(seconds_long)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(round(minutes / 60), 24)
    return f"{days} d {rest} h" if rest and days < 14 else f"{days} d"


def when(wall: float, beside: float | None = None) -> str:
    """A minute in UTC; without its date where it is that of `beside`."""
    at = datetime.fromtimestamp(wall, UTC)
    if beside is not None and datetime.fromtimestamp(beside, UTC).date() == at.date():
        return f"{at:%H:%M}"
    return f"{at:%Y-%m-%d %H:%M}"

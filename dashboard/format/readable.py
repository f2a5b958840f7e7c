"""Numbers as a person reads them: durations, ages, sizes, counts. Absent is a dash, never a zero."""

from datetime import datetime

from ackscope.clock import stamp
from dashboard.format.timezones import UTC, Zone, twice

ABSENT = "\N{EN DASH}"

STALE_AFTER = 30.0
"""Seconds after which live data is called old: six polls at the default interval."""


def latency(seconds: float | None) -> str:
    """A short duration with three digits: 0.42 ms, 18.5 ms, 2.31 s."""
    if seconds is None:
        return ABSENT
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1000:.3g} ms"


def span(seconds: float) -> str:
    """A long duration in its largest unit: 42 s, 7 min, 3 h 5 min, 2 d 4 h."""
    whole = int(max(seconds, 0))
    if whole < 90:
        return f"{whole} s"
    minutes = whole // 60
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(hours, 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def size(count: int | None) -> str:
    """Bytes in binary units: 512 B, 1.5 GiB."""
    if count is None:
        return ABSENT
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:,.3g} TiB" if value < 1000 else f"{value:,.0f} TiB"


def count(number: float | None) -> str:
    """A number of things, with thousands apart."""
    return ABSENT if number is None else f"{number:,.0f}"


def plural(number: int, thing: str) -> str:
    """`1 warning`, `3 warnings`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def clock(wall: float, now: float, zone: Zone = UTC) -> str:
    """A moment as time of day with the zone's name, and with its date when that is not today's."""
    moment = zone.at(wall)
    shape = "%H:%M:%S" if moment.date() == zone.at(now).date() else "%Y-%m-%d %H:%M:%S"
    return f"{moment.strftime(shape)} {zone.short(moment)}"


def minute(at: float | datetime, zone: Zone = UTC, shape: str = "%Y-%m-%d %H:%M") -> str:
    """A moment where the zone is named beside it; by name itself in an hour that clocks show twice."""
    moment = zone.at(at)
    return f"{moment.strftime(shape)} {zone.short(moment)}" if twice(moment) else moment.strftime(shape)


def between(start: float | datetime, end: float | datetime, zone: Zone = UTC) -> str:
    """Two moments and the name of their zone: `2026-03-01 12:04 to 12:31 UTC`, its date once where it is one day."""
    first, last = zone.at(start), zone.at(end)
    names = zone.short(first), zone.short(last)
    begins = f"{first:%Y-%m-%d %H:%M}" + ("" if names[0] == names[1] else f" {names[0]}")
    ends = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{begins} to {ends} {names[1]}"


def parse_iso(text: str | None) -> float | None:
    """Seconds since 1970 of an ISO 8601 text; None where it is absent or no time."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return stamp(moment)


def since(text: str | None, now: float, zone: Zone = UTC) -> str:
    """Since when, as a person asks: `since 08:12:05 UTC, 29 min ago`.

    Args:
        text: ISO 8601; None where it cannot be told.
        now: the present on the clock that wrote `text`, seconds since 1970.
        zone: in which the moment is told.
    """
    wall = parse_iso(text)
    if wall is None:
        return "since when: cannot be told"
    return f"since {clock(wall, now, zone)}, {span(now - wall)} ago"


def is_stale(seconds: float | None, overdue: float | None = None) -> bool:
    """Whether data is too old to say anything of now.

    Args:
        seconds: its age; None where there is none, which is not old.
        overdue: for how long newer data has been due; None where that is not known: then its age decides.
    """
    return seconds is not None and (seconds if overdue is None else overdue) > STALE_AFTER


def age(what: str, seconds: float | None, overdue: float | None = None) -> str:
    """The age of data, with the word that says when it is too old (`is_stale`)."""
    if seconds is None:
        return f"no {what} yet"
    return f"{what} {span(seconds)} old{' (stale)' if is_stale(seconds, overdue) else ''}"

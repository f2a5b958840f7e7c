"""Numbers and times as text: durations, ages, sizes, counts. A missing value is a dash, never a zero."""

from datetime import datetime

from ackscope import format as fmt
from ackscope.clock import stamp
from ackscope.format import ABSENT, whole_minutes
from dashboard.format.timezones import UTC, Zone, is_ambiguous

STALE_AFTER = 30.0
"""Seconds after which live data is stale: six polls at the default interval."""


def latency(seconds: float | None) -> str:
    """A latency with three digits: 0.42 ms, 18.5 ms, 2.31 s."""
    if seconds is None:
        return ABSENT
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1000:.3g} ms"


def duration(seconds: float) -> str:
    """A duration in its one or two largest units: 42 s, 7 min, 3 h 5 min, 2 d 4 h."""
    whole = int(max(seconds, 0))
    return f"{whole} s" if whole < 90 else whole_minutes(whole // 60)


def count(number: float | None) -> str:
    """A number with thousands separators."""
    return ABSENT if number is None else f"{number:,.0f}"


def queues(number: int, own: int) -> str:
    """How many queues there are: `4 queues, and 15 of probes`; `own` of them belong to the probes of ackscope."""
    apps = fmt.plural(number - own, "queue")
    return f"{apps}, and {count(own)} of probes" if own else apps


def clock(wall: float, now: float, zone: Zone = UTC) -> str:
    """A time of day with the zone's name, and the date if it is not today."""
    moment = zone.local(wall)
    shape = "%H:%M:%S" if moment.date() == zone.local(now).date() else "%Y-%m-%d %H:%M:%S"
    return f"{moment.strftime(shape)} {zone.abbreviation(moment)}"


def minute(at: float | datetime, zone: Zone = UTC, shape: str = "%Y-%m-%d %H:%M") -> str:
    """A time without its zone, for places that name the zone; with the zone in the hour that a clock change repeats."""
    moment = zone.local(at)
    return f"{moment.strftime(shape)} {zone.abbreviation(moment)}" if is_ambiguous(moment) else moment.strftime(shape)


def between(start: float | datetime, end: float | datetime, zone: Zone = UTC) -> str:
    """A time range with its zone: `2026-03-01 12:04 to 12:31 UTC`; the date appears once if both are on one day."""
    first, last = zone.local(start), zone.local(end)
    names = zone.abbreviation(first), zone.abbreviation(last)
    begins = f"{first:%Y-%m-%d %H:%M}" + ("" if names[0] == names[1] else f" {names[0]}")
    ends = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{begins} to {ends} {names[1]}"


def parse_iso(text: str | None) -> float | None:
    """Seconds since 1970 of an ISO 8601 text; None if it is missing or invalid."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return stamp(moment)


def since(text: str | None, now: float, zone: Zone = UTC) -> str:
    """A start time with its age: `since 08:12:05 UTC, 29 min ago`.

    Args:
        text: ISO 8601; None if unknown.
        now: current time of the clock that wrote `text`, seconds since 1970.
        zone: time zone of the text.
    """
    wall = parse_iso(text)
    if wall is None:
        return "start time unknown"
    return f"since {clock(wall, now, zone)}, {duration(now - wall)} ago"


def is_stale(seconds: float | None, overdue: float | None = None) -> bool:
    """Whether data is too old to describe the present.

    Args:
        seconds: age of the data; None without data, which is not stale.
        overdue: how late the next poll is; None if unknown: then the age decides.
    """
    return seconds is not None and (seconds if overdue is None else overdue) > STALE_AFTER


def age(what: str, seconds: float | None, overdue: float | None = None) -> str:
    """The age of data, marked if it is stale (`is_stale`)."""
    if seconds is None:
        return f"no {what} yet"
    return f"{what} {duration(seconds)} old{' (stale)' if is_stale(seconds, overdue) else ''}"

"""Hours as whole numbers since 1970 UTC, and the dates that they belong to."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import groupby

from ackscope.tables import HEARTBEAT

HOUR = 3600

REACH = round(2 * HEARTBEAT)
"""Seconds: the farthest that a landing row has to do with minutes before and after it."""

_EPOCH = date(1970, 1, 1)


def date_of(hour: int) -> date:
    """The UTC date of an hour."""
    return datetime.fromtimestamp(hour * HOUR, UTC).date()


def first_hour(day: date) -> int:
    """The hour 00 of a UTC date."""
    return (day - _EPOCH).days * 24


def runs(hours: Iterable[int]) -> Iterator[list[int]]:
    """Hours without a gap between them, and of one date, together."""
    ordered = sorted(set(hours))
    for _, run in groupby(enumerate(ordered), lambda item: (item[1] - item[0], date_of(item[1]))):
        yield [hour for _, hour in run]

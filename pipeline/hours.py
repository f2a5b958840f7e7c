"""Hours as integers since 1970 UTC, and their dates."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from itertools import groupby

from ackscope.tables import HEARTBEAT

HOUR = 3600

# Maximum distance, in seconds, between a landing row and a minute whose rollup depends on it.
REACH = round(2 * HEARTBEAT)

_EPOCH = date(1970, 1, 1)


def date_of(hour: int) -> date:
    """The UTC date of an hour."""
    return datetime.fromtimestamp(hour * HOUR, UTC).date()


def first_hour(day: date) -> int:
    """The first hour of a UTC date."""
    return (day - _EPOCH).days * 24


def runs(hours: Iterable[int]) -> Iterator[list[int]]:
    """Group hours into runs of consecutive hours of one date."""
    ordered = sorted(set(hours))
    for _, run in groupby(enumerate(ordered), lambda item: (item[1] - item[0], date_of(item[1]))):
        yield [hour for _, hour in run]

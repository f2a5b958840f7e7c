"""When the rows of these tests are."""

from datetime import UTC, datetime

NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp())
"""Seconds since 1970."""

EVERY = 20
"""Seconds from poll to poll."""


def at(seconds: float) -> datetime:
    """A moment this long after noon."""
    return datetime.fromtimestamp(NOON + seconds, UTC)

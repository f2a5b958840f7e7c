import pytest

from dashboard.format import readable
from dashboard.format.readable import ABSENT


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ABSENT),
        (0.0000512, "0.0512 ms"),
        (0.0041, "4.1 ms"),
        (0.25, "250 ms"),
        (2.313, "2.31 s"),
        (4000, "4,000 s"),
    ],
)
def test_latency(seconds: float | None, text: str) -> None:
    """Seconds are shown as milliseconds up to one second; absent is a dash."""
    assert text == readable.latency(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (42, "42 s"), (90, "1 min"), (3600, "60 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h")],
)
def test_span(seconds: float, text: str) -> None:
    """A duration is told in its largest unit; clocks that disagree do not make it negative."""
    assert text == readable.duration(seconds)


@pytest.mark.parametrize(
    ("count", "text"), [(None, ABSENT), (0, "0 B"), (1000, "1000 B"), (1536, "1.5 KiB"), (6 * 1024**3, "6 GiB")]
)
def test_size(count: int | None, text: str) -> None:
    """Sizes are binary; zero is a value and absent is not."""
    assert text == readable.size(count)


def test_since_tells_the_moment_and_how_long_ago() -> None:
    """In UTC, by the clock of the one who wrote it."""
    now = readable.parse_iso("2026-03-01T08:41:00Z")

    assert now is not None
    assert "since 08:12:00 UTC, 29 min ago" == readable.since("2026-03-01T08:12:00Z", now)
    assert "since 2026-02-28 08:41:00 UTC, 24 h ago" == readable.since("2026-02-28T08:41:00Z", now)


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_since_that_cannot_be_told(text: str | None) -> None:
    """No moment is made up."""
    assert "start time unknown" == readable.since(text, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "no probes yet"), (30, "probes 30 s old"), (31, "probes 31 s old (stale)")]
)
def test_age(seconds: float | None, text: str) -> None:
    """Old data is called so."""
    assert text == readable.age("probes", seconds)

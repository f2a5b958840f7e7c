import pytest

from ackscope import format as fmt
from ackscope.format import ABSENT
from dashboard.format import readable


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
    """Milliseconds below one second; a missing value is a dash."""
    assert text == readable.latency(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (42, "42 s"), (90, "1 min"), (3600, "60 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h")],
)
def test_duration(seconds: float, text: str) -> None:
    """In its largest unit; clocks that disagree do not make it negative."""
    assert text == readable.duration(seconds)


@pytest.mark.parametrize(
    ("count", "text"), [(None, ABSENT), (0, "0 B"), (1000, "1000 B"), (1536, "1.5 KiB"), (6 * 1024**3, "6 GiB")]
)
def test_size(count: int | None, text: str) -> None:
    """Binary units; zero is a value, a missing value is a dash."""
    assert text == fmt.size(count)


def test_since() -> None:
    """Time in UTC and age, by the clock of the writer."""
    now = readable.parse_iso("2026-03-01T08:41:00Z")

    assert now is not None
    assert "since 08:12:00 UTC, 29 min ago" == readable.since("2026-03-01T08:12:00Z", now)
    assert "since 2026-02-28 08:41:00 UTC, 24 h ago" == readable.since("2026-02-28T08:41:00Z", now)


@pytest.mark.parametrize("text", [None, "", "yesterday"])
def test_unknown_start_time(text: str | None) -> None:
    """No time is made up."""
    assert "start time unknown" == readable.since(text, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "no probes yet"), (30, "probes 30 s old"), (31, "probes 31 s old (stale)")]
)
def test_age(seconds: float | None, text: str) -> None:
    """Stale data is marked."""
    assert text == readable.age("probes", seconds)

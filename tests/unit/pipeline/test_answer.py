from datetime import UTC, datetime, timedelta

import pytest

from ackscope.errors import UsageError
from pipeline.answers.answer import DataCoverage, HistoryAnswer, coverage
from pipeline.answers.finding import typical
from pipeline.answers.moments import format_duration, parse_moment
from pipeline.answers.render import WIDTH, render
from pipeline.answers.slo import edges

NOW = datetime(2026, 3, 16, 12, 30, tzinfo=UTC).timestamp()


def hour(start: datetime, first: int = 0, last: int = 59) -> dict:
    """Return the coverage of an hour with minutes from `first` to `last`."""
    minutes = {"first_minute": start + timedelta(minutes=first), "last_minute": start + timedelta(minutes=last)}
    return {"hour": start, "minutes": last - first + 1, **minutes}


def test_gaps_are_reported() -> None:
    """Gaps are between hours, or after an hour that ended early; the time before the first data is no gap."""
    noon = datetime(2026, 3, 16, 12, tzinfo=UTC)
    hours = [hour(noon, 10), hour(noon + timedelta(hours=1), 0, 29), hour(noon + timedelta(hours=4))]
    found = coverage(noon.timestamp() - 7200, noon.timestamp() + 5 * 3600, hours)

    assert ("2026-03-16T12:10:00Z", "2026-03-16T17:00:00Z") == (found.first, found.last)
    assert (("2026-03-16T13:30:00Z", "2026-03-16T16:00:00Z"),) == found.gaps
    assert (140, 150) == (found.minutes, found.gap_minutes)


def test_minutes_that_lack_inside_an_hour_are_counted() -> None:
    """The table of hours has the number of minutes, not which."""
    noon = datetime(2026, 3, 16, 12, tzinfo=UTC)

    assert 20 == coverage(0, NOW, [{**hour(noon), "minutes": 40}]).gap_minutes


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-16T12:04", "2026-03-16T12:04:00+00:00"),
        ("2026-03-16 13:04+01:00", "2026-03-16T12:04:00+00:00"),
        ("12:04", "2026-03-16T12:04:00+00:00"),
        ("12:31", "2026-03-15T12:31:00+00:00"),
        ("30m ago", "2026-03-16T12:00:00+00:00"),
        ("now", "2026-03-16T12:30:00+00:00"),
    ],
)
def test_moments_as_people_write_them(text: str, at: str) -> None:
    """Times are in UTC; a time of day means its latest occurrence."""
    assert datetime.fromisoformat(at).timestamp() == parse_moment(text, NOW)


@pytest.mark.parametrize("text", ["yesterday", "25:00", "ago", "soon ago", "2026-13-01", ""])
def test_what_is_no_moment(text: str) -> None:
    """One line with the forms that are understood."""
    with pytest.raises(UsageError) as error:
        parse_moment(text, NOW)

    assert f"invalid --at {text!r}; use 2026-03-01T12:04 (UTC), 12:04, '30m ago' or now" == str(error.value)


def test_the_future_is_no_moment() -> None:
    """Answers are only about the past."""
    with pytest.raises(UsageError, match="is in the future"):
        parse_moment("2026-03-17", NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(42, "42 s"), (420, "7 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h"), (40 * 86400, "40 d"), (90, "2 min")],
)
def test_long(seconds: float, text: str) -> None:
    """Durations are shown in their two largest units."""
    assert text == format_duration(seconds)


def test_a_threshold_lies_between_two_edges_or_on_one() -> None:
    """The edges are those of the histogram: nothing finer is known."""
    from ackscope.latency import EDGES

    low, high = edges(0.1)

    assert EDGES[low - 1] < 0.1 < EDGES[high - 1]
    assert high == low + 1
    assert (5, 5) == edges(EDGES[4])
    assert (0, 1) == edges(1e-6)
    assert (len(EDGES), len(EDGES)) == edges(600.0)


def test_a_finding_that_keeps_to_an_hour_and_a_day() -> None:
    """Four Mondays at 03:00 are a pattern; four random times are not."""
    monday = datetime(2026, 2, 2, 3, 5, tzinfo=UTC)
    weekly = [(monday + timedelta(weeks=week, minutes=7 * week)).timestamp() for week in range(4)]
    odd = [(monday + timedelta(days=3 * step, hours=7 * step)).timestamp() for step in range(4)]

    assert "03:00 to 06:00 UTC (4 of 4), Mondays (4 of 4)" == typical(weekly)
    assert typical(odd) is None
    assert typical(weekly[:2]) is None


def test_a_report_fits_into_eighty_columns() -> None:
    """Sentences are wrapped, the time of the data comes last."""
    known = DataCoverage(
        "2026-03-09T00:00:00Z",
        "2026-03-16T00:00:00Z",
        "2026-03-10T00:00:00Z",
        "2026-03-16T00:00:00Z",
        8000,
        (("2026-03-11T00:00:00Z", "2026-03-11T10:40:00Z"),),
        640,
    )
    sentences = tuple(f"queue {number} in vhost '/': " + "word " * 30 for number in range(25))
    text = render(HistoryAnswer("worst", {}, known, sentences))

    assert WIDTH >= max(len(line) for line in text.splitlines())
    assert "    5 more, see --json" in text
    assert "gaps of 10 h 40 min together: 2026-03-11 00:00 to 2026-03-11 10:40" in " ".join(text.split())


def test_what_has_no_answer_says_why() -> None:
    """The answer also says that there is no data."""
    text = render(
        HistoryAnswer("slo", {}, DataCoverage("2026-03-09T00:00:00Z", "2026-03-16T00:00:00Z"), because="nobody looked")
    )

    assert "no answer: nobody looked" in text
    assert "data: none; requested 2026-03-09 00:00 to 2026-03-16 00:00 UTC" in text

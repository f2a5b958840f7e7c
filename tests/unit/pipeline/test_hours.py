from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from pipeline.hours import date_of, first_hour, runs


@given(st.dates(date(1970, 1, 1), date(2200, 1, 1)))
def test_dates_and_hours_agree(day):
    """Every hour of a date has that date, and neighbouring hours do not."""
    first = first_hour(day)

    assert [day] * 24 == [date_of(first + hour) for hour in range(24)]
    assert day not in {date_of(first + 24), date_of(first - 1) if first else None}


@given(st.sets(st.integers(490_000, 490_100)))
def test_runs_hold_every_hour_once(hours):
    """A run has no gap and a single date; all runs together contain all hours, in order."""
    found = list(runs(hours))

    assert sorted(hours) == [hour for run in found for hour in run]
    for run in found:
        assert list(range(run[0], run[-1] + 1)) == run
        assert 1 == len({date_of(hour) for hour in run})

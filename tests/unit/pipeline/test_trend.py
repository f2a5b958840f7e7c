import math
import random

import pytest

from pipeline.answers.trend import DAYS_NEEDED, Forecast, trend

HOUR, DAY = 3600.0, 86400.0


def series(days: int, slope: float, *, wave: float = 0.0, noise: float = 0.0, start: float = 1000.0) -> dict:
    """Hourly values that grow by `slope` a day, go up and down every day, and vary."""
    dice = random.Random(f"{days} {slope} {wave} {noise}")
    return {
        hour * HOUR: start + slope * hour / 24 + wave * math.sin(hour / 24 * 2 * math.pi) + dice.gauss(0, noise)
        for hour in range(days * 24)
    }


def test_a_daily_rise_and_fall_is_no_trend() -> None:
    """This holds even if the last day ended high."""
    assert Forecast.NO_TREND is trend(series(10, 0.0, wave=400.0, noise=20.0), 5000.0).forecast


def test_a_slope_below_a_daily_wave_is_found() -> None:
    """The time to the limit is found too, with a range that contains the true one."""
    found = trend(series(14, 30.0, wave=400.0, noise=10.0), 3000.0)
    # The daily peak, 400 above the line, reaches the limit first.
    truth = (3000.0 - 1000.0 - 400.0) / 30.0 * DAY

    assert Forecast.REACHES is found.forecast
    assert found.low <= 30.0 <= found.high
    assert found.earliest < found.at < found.latest
    assert abs(found.at - truth) < 3 * DAY


def test_a_free_disk_that_shrinks_reaches_its_limit_from_above() -> None:
    """Falling values, and a limit below."""
    found = trend(series(10, -50.0, noise=5.0), 200.0, rising=False)

    assert Forecast.REACHES is found.forecast
    assert abs(found.at - 16 * DAY) < DAY


def test_one_that_moves_away_is_not_called_a_danger() -> None:
    """The free disk grows."""
    assert Forecast.AWAY is trend(series(10, 50.0, noise=5.0), 200.0, rising=False).forecast


@pytest.mark.parametrize("days", range(1, DAYS_NEEDED))
def test_too_few_days_are_reported(days: int) -> None:
    """With how many there are."""
    found = trend(series(days, 500.0), 3000.0)

    assert (Forecast.NOT_YET, days) == (found.forecast, found.days)


def test_a_limit_far_beyond_the_history_is_not_foretold() -> None:
    """Five days of history allow no forecast for next year."""
    assert Forecast.FAR is trend(series(5, 1.0), 3000.0).forecast


def test_a_limit_that_is_reached_is_reported_whatever_the_trend() -> None:
    """The value is at the limit and does not change."""
    assert Forecast.OVER is trend(series(5, 0.0), 900.0).forecast


def test_without_a_limit_only_the_growth_is_reported() -> None:
    """A backlog has no known limit."""
    assert Forecast.NO_LIMIT is trend(series(10, 50.0, noise=5.0), None).forecast
    assert Forecast.NO_TREND is trend(series(10, 0.0, noise=5.0), None).forecast


def test_an_incident_of_the_past_bends_no_trend() -> None:
    """The incident is one day with ten times the backlog, which was then consumed."""
    values = series(14, 0.0, wave=100.0, noise=10.0)
    values |= {at: value * 10 for at, value in values.items() if 3 * DAY <= at < 4 * DAY}

    assert Forecast.NO_TREND is trend(values, 20_000.0).forecast


def test_random_noise_has_a_trend_at_most_one_time_in_ten() -> None:
    """The range is meant to hold the true slope nine times in ten."""
    found = 0
    for seed in range(60):
        dice = random.Random(seed)
        # Days differ as wholes, as they do in life: all hours of one share a part of their noise.
        shared = [dice.gauss(0, 50) for _ in range(10)]
        values = {hour * HOUR: 1000 + shared[hour // 24] + dice.gauss(0, 20) for hour in range(240)}
        found += trend(values, 1e6).forecast is not Forecast.NO_TREND

    assert found <= 10

"""A robust, seasonally adjusted trend of hourly values, and when it reaches a limit. Pure.

Only values of the same hour of the day are compared (a seasonal Theil-Sen estimator): a daily cycle is not a trend, and
up to a quarter of outliers moves it little. The confidence interval is Sen's, and deliberately wide: the hours of a day
move together, so they count as one observation per day, not as 24.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

# With fewer days no slope is statistically significant.
DAYS_NEEDED = 4

# A limit further away than this many times the history is too far to predict.
HORIZON = 5.0

# Standard deviations of a 90 % confidence interval.
_Z_90 = 1.645

_DAY = 86400.0
_MAX_DAYS_A_SEASON = 60


class Forecast(StrEnum):
    """The result of an extrapolation."""

    NOT_YET = "not yet"
    NO_TREND = "no trend"
    AWAY = "moves away from the limit"
    FAR = "too far to tell"
    REACHES = "reaches it"
    OVER = "is over it"
    NO_LIMIT = "no limit is known"


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend of one series.

    Attributes:
        days: days with values.
        slope, low, high: units per day, with the 90 % confidence interval; None without enough history.
        level: the current level: the median of the latest day.
        recent_extreme: the value of the latest day closest to the limit, without outliers.
        at, earliest, latest: when the limit is reached, seconds since 1970; `latest` is None if it may never be.
    """

    forecast: Forecast
    days: int
    slope: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    recent_extreme: float | None = None
    at: float | None = None
    earliest: float | None = None
    latest: float | None = None


def trend(values: Mapping[float, float], limit: float | None, *, rising: bool = True) -> Trend:
    """The trend of a series and when it reaches a limit.

    Args:
        values: by the start of the hour, seconds since 1970.
        limit: the limit; None without one.
        rising: the limit is above; False: below.
    """
    days = len({hour // _DAY for hour in values})
    if days < DAYS_NEEDED:
        return Trend(Forecast.NOT_YET, days)
    slopes, spread = _slopes(values)
    if not slopes:
        return Trend(Forecast.NOT_YET, days)
    slope, low, high = _sen(slopes, spread)
    now = max(values) + 3600
    latest = [value - slope * (at - now) / _DAY for at, value in values.items() if at >= now - _DAY]
    level, recent_extreme = median(latest), _quantile(latest, 0.9 if rising else 0.1)
    if limit is None:
        return Trend(
            Forecast.NO_LIMIT if low * high > 0 else Forecast.NO_TREND, days, slope, low, high, level, recent_extreme
        )
    sign = 1.0 if rising else -1.0
    distance = (limit - recent_extreme) * sign
    towards = sorted((low * sign, high * sign))
    forecast, at, earliest, last = _forecast(distance, slope * sign, towards, now, (now - min(values)) * HORIZON)
    return Trend(forecast, days, slope, low, high, level, recent_extreme, at, earliest, last)


def _forecast(
    distance: float, slope: float, towards: Sequence[float], now: float, horizon: float
) -> tuple[Forecast, float | None, float | None, float | None]:
    """The result, with the most likely, earliest and latest time. Positive slopes lead towards the limit."""
    if distance <= 0:
        return Forecast.OVER, None, None, None
    if towards[0] <= 0 <= towards[1]:
        return Forecast.NO_TREND, None, None, None
    if slope <= 0:
        return Forecast.AWAY, None, None, None
    need, first, last = (distance / it * _DAY for it in (slope, towards[1], towards[0]))
    if need > horizon:
        return Forecast.FAR, None, None, None
    return Forecast.REACHES, now + need, now + first, now + last if last <= 2 * horizon else None


def _slopes(values: Mapping[float, float]) -> tuple[list[float], float]:
    """The sorted slopes per day between all values of the same hour of the day, and the spread of their sign count.

    The spread is the standard deviation of the number of rising minus falling slopes without a trend. Sen's confidence
    interval is made from it.
    """
    seasons: dict[float, list[tuple[float, float]]] = {}
    for at in sorted(values):
        seasons.setdefault(at % _DAY, []).append((at / _DAY, values[at]))
    slopes, spread = [], 0.0
    for season in seasons.values():
        points = season[-_MAX_DAYS_A_SEASON:]
        n = len(points)
        slopes += [(y - v) / (x - u) for i, (u, v) in enumerate(points) for x, y in points[i + 1 :]]
        spread += math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return sorted(slopes), spread


def _sen(slopes: Sequence[float], spread: float) -> tuple[float, float, float]:
    """The median slope and its confidence interval."""
    count, reach = len(slopes), _Z_90 * spread
    low = max(0, math.floor((count - reach) / 2))
    high = min(count - 1, math.ceil((count + reach) / 2))
    return median(slopes), slopes[low], slopes[high]


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[round(q * (len(ordered) - 1))]

"""A robust trend of hourly values, its daily shape taken out, and when it reaches a limit. Pure.

Only values of the same hour of the day are compared with each other (a seasonal Theil-Sen estimate): a daily rise and
fall makes no trend, and up to a quarter of wild values moves it little. The range is that of Sen, and wide on purpose:
the hours of a day go up and down together, so they count as one witness a day and not as 24.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

DAYS_NEEDED = 4
"""With fewer days no slope of any data would be surer than chance."""

HORIZON = 5.0
"""A limit farther away than so many times the history is too far to tell."""

_Z_90 = 1.645
"""Standard deviations: nine times in ten the slope lies in its range."""

_DAY = 86400.0
_MAX_DAYS_A_SEASON = 60


class Forecast(StrEnum):
    """What can be said."""

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
        days: that have values.
        slope, low, high: units a day; the range holds the true one nine times in ten. None where it is not yet told.
        level: where it stands: the median of the latest day.
        edge: how near it came to the limit in the latest day, a spike left out.
        at, earliest, latest: when the limit is reached, seconds since 1970; `latest` is None where it may be never.
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
        limit: where it must not get to; None where there is none.
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
    """The verdict, and when: most likely, at the earliest, at the latest; slopes are those towards the limit."""
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
    """The slopes between all values of the same hour of the day, a day; and the spread of their count."""
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
    """The median slope and the range around it."""
    count, reach = len(slopes), _Z_90 * spread
    low = max(0, math.floor((count - reach) / 2))
    high = min(count - 1, math.ceil((count + reach) / 2))
    return median(slopes), slopes[low], slopes[high]


def _quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[round(q * (len(ordered) - 1))]

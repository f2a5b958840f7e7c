"""Baseline bands: the usual range of a series at an hour of the week, or why there is none yet.

Pure arithmetic over numpy arrays. The centre is a median and the width a median absolute deviation, so one incident in
a few weeks changes neither much. A constant series has a band as well.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackscope.baselines import HOUR_OF_DAY, HOUR_OF_WEEK, NOT_YET
from pipeline.analysis.noise import NoiseModel, Values

# Minimum number of values for a band by hour of week, or else by hour of day.
WEEKS, DAYS = 3, 3

# Robust standard deviations to either side of the median.
WIDTH = 4.0

# Standard deviation of a normal distribution in median absolute deviations.
_NORMAL = 1.4826

_BY_DAY, _BY_WEEK = 1, 2

SCOPES = (NOT_YET, HOUR_OF_DAY, HOUR_OF_WEEK)


@dataclass(frozen=True, slots=True)
class Bands:
    """The bands of many series, one array per attribute.

    Attributes:
        scope: index into `SCOPES`.
        values: number of hours it is computed from.
        low, middle, high: NaN if there is none yet; `middle` is the median.
    """

    scope: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    low: Values
    middle: Values
    high: Values


def bands(
    days: Values, own: npt.NDArray[np.bool_], noise: NoiseModel, low: Values | None, high: Values | None
) -> Bands:
    """The bands of series for one hour of one day of the week.

    Args:
        days: matrix of series by days, each the value of that hour; NaN if unknown.
        own: which of the days are that day of the week.
        noise: their noise model.
        low: if given, the lowest values within each hour: the band extends to what is usual for these.
        high: if given, the highest values within each hour.
    """
    weeks, all_days = _known(days[:, own]), _known(days)
    scope = np.where(weeks >= WEEKS, _BY_WEEK, np.where(all_days >= DAYS, _BY_DAY, 0))
    middle, under, over = _band(days, own, scope, noise)
    if low is not None:
        under = np.fmin(under, _band(low, own, scope, noise)[1])
    if high is not None:
        over = np.fmax(over, _band(high, own, scope, noise)[2])
    return Bands(scope, np.where(scope == _BY_WEEK, weeks, all_days), under, middle, over)


def _band(
    days: Values, own: npt.NDArray[np.bool_], scope: npt.NDArray[np.int64], noise: NoiseModel
) -> tuple[Values, Values, Values]:
    scaled = noise.to_scale(days)
    all_days_stats = _median_and_spread(scaled, noise)
    own_days_stats = _median_and_spread(scaled[:, own], noise)
    middle, spread = (
        np.where(scope == _BY_WEEK, mine, others) for mine, others in zip(own_days_stats, all_days_stats, strict=True)
    )
    known = scope > 0
    under, over = (noise.from_scale(middle + sign * WIDTH * spread) for sign in (-1.0, 1.0))
    return tuple(np.where(known, it, np.nan) for it in (noise.from_scale(middle), under, over))  # type: ignore[return-value]


def _median_and_spread(scaled: Values, noise: NoiseModel) -> tuple[Values, Values]:
    """Median and spread of each row."""
    middle = median(scaled)
    spread = _NORMAL * median(np.abs(scaled - middle[:, None]))
    return middle, np.fmax(spread, noise.min_scatter(noise.from_scale(middle)))


def median(rows: Values) -> Values:
    """The median of each row, ignoring NaN; NaN for empty rows."""
    ordered = np.sort(rows, axis=1)
    known = _known(rows)
    at = np.arange(len(rows))
    last = np.maximum(known - 1, 0)
    middle = (ordered[at, last // 2] + ordered[at, (last + 1) // 2]) / 2
    return np.asarray(np.where(known > 0, middle, np.nan))


def _known(rows: Values) -> npt.NDArray[np.int64]:
    return np.asarray(np.sum(~np.isnan(rows), axis=1))

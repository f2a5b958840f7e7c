"""What is usual of a series at an hour of the week: a robust band, or why there is none yet.

Pure arithmetic over numpy arrays. The middle is a median and the width a median distance from it, so that one incident
in a few weeks moves neither by much; a series that never moves has a band all the same.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ackscope.baselines import HOUR_OF_DAY, HOUR_OF_WEEK, NOT_YET
from pipeline.analysis.noise import NoiseModel, Values

WEEKS, DAYS = 3, 3
"""Values that a band of the hour of the week, or else of the hour of the day, needs at least."""

WIDTH = 4.0
"""Robust standard deviations to either side of the middle."""

_NORMAL = 1.4826
"""A normal distribution's standard deviation, in median distances from its median."""

_BY_DAY, _BY_WEEK = 1, 2

SCOPES = (NOT_YET, HOUR_OF_DAY, HOUR_OF_WEEK)


@dataclass(frozen=True, slots=True)
class Bands:
    """Of many series, an array each.

    Attributes:
        scope: index into `SCOPES`.
        values: how many hours it is made of.
        low, middle, high: NaN where there is none yet.
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
        days: matrix of series by days, each the value of that hour; NaN where it is not known.
        own: which of the days are that day of the week.
        noise: how they scatter.
        low: where given, the same of the lowest within each hour: the band reaches to what is usual of these.
        high: where given, the same of the highest.
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
    """Middle and spread of each row."""
    middle = median(scaled)
    spread = _NORMAL * median(np.abs(scaled - middle[:, None]))
    return middle, np.fmax(spread, noise.min_scatter(noise.from_scale(middle)))


def median(rows: Values) -> Values:
    """Of each row, what is not NaN; NaN where all of it is."""
    ordered = np.sort(rows, axis=1)
    known = _known(rows)
    at = np.arange(len(rows))
    last = np.maximum(known - 1, 0)
    middle = (ordered[at, last // 2] + ordered[at, (last + 1) // 2]) / 2
    return np.asarray(np.where(known > 0, middle, np.nan))


def _known(rows: Values) -> npt.NDArray[np.int64]:
    return np.asarray(np.sum(~np.isnan(rows), axis=1))

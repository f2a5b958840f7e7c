"""Novelty filter: a shift that recurs daily, weekly or often is normal for its series.

Pure arithmetic over numpy arrays.
"""

import numpy as np
import numpy.typing as npt

from pipeline.analysis.noise import Values

_DAY = 1440
_WEEK = 7 * _DAY
# Minutes by which a daily event may be early or late.
_CLOCK_TOLERANCE = 30

# Recurs daily: on this many other days at this time of day, within this many minutes before and after.
_NIGHT_COUNT, _NIGHT_RANGE = 3, 14 * _DAY

# Recurs weekly: in this many other weeks at this time of the week.
_WEEK_COUNT, _WEEK_RANGE = 2, 28 * _DAY

# Recurs often: this many others at any time, within this many minutes before and after.
_OFTEN_COUNT, _OFTEN_MINUTES = 3, _WEEK

# Other shifts are similar if they have at least this share of the size.
_SIMILAR_SHARE = 0.4

Minutes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def is_novel(at: Minutes, size: Values, sibling_at: Minutes, sibling_size: Values) -> Flags:
    """Flag the shifts of one series that do not recur.

    Args:
        at: minutes since 1970, sorted.
        size: size of each shift; negative for a fall.
        sibling_at: shifts of this series and its siblings, unsorted. A client that reconnects every day has a new
            channel every day, so its nightly batch recurs only among siblings.
        sibling_size: size of each of these; negative for a fall.
    """
    apart, like = _compared(at, size, sibling_at, sibling_size)
    days = _days(apart, _DAY)
    nights = _distinct(like & _near(apart, _DAY) & (np.abs(apart) <= _NIGHT_RANGE + _CLOCK_TOLERANCE), days)
    weeks = _distinct(like & _near(apart, _WEEK) & (np.abs(apart) <= _WEEK_RANGE + _CLOCK_TOLERANCE), days)
    clocked = (nights >= _NIGHT_COUNT) | (weeks >= _WEEK_COUNT)
    # Daily and weekly shifts do not count as frequent; nor do siblings, which may shift at the same time.
    apart, like = _compared(at, size, at, size)
    often = np.sum(like & ~clocked[None, :] & (apart != 0) & (np.abs(apart) <= _OFTEN_MINUTES), axis=1)
    return np.asarray(~clocked & (often < _OFTEN_COUNT))


def _compared(at: Minutes, size: Values, other_at: Minutes, other_size: Values) -> tuple[Minutes, Flags]:
    """For each shift (row) and other shift (column): minutes between them, and whether the other is similar."""
    large = np.abs(other_size)[None, :] >= _SIMILAR_SHARE * np.abs(size)[:, None]
    return other_at[None, :] - at[:, None], np.asarray((np.sign(other_size)[None, :] == np.sign(size)[:, None]) & large)


def _days(apart: Minutes, period: int) -> Minutes:
    return np.asarray(np.rint(apart / period).astype(np.int64))


def _near(apart: Minutes, period: int) -> Flags:
    """Whether another shift was at the same time of the day, or week."""
    periods = _days(apart, period)
    return np.asarray((periods != 0) & (np.abs(apart - periods * period) <= _CLOCK_TOLERANCE))


def _distinct(mask: Flags, days: Minutes) -> Minutes:
    return np.array([len(np.unique(row[selected])) for row, selected in zip(days, mask, strict=True)], dtype=np.int64)

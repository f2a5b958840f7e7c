"""Novelty filter: a shift that recurs every night, or again and again, is normal for its series.

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
    """Which shifts of one series are not recurring.

    Args:
        at: minutes since 1970, sorted.
        size: by how much it rose or, negative, fell.
        sibling_at: shifts of this series and its siblings, unsorted: a client that reconnects every day has another
            channel every day, and its batch still recurs every night.
        sibling_size: by how much these rose or fell.
    """
    apart, like = _compared(at, size, sibling_at, sibling_size)
    days = _days(apart, _DAY)
    nights = _distinct(like & _near(apart, _DAY) & (np.abs(apart) <= _NIGHT_RANGE + _CLOCK_TOLERANCE), days)
    weeks = _distinct(like & _near(apart, _WEEK) & (np.abs(apart) <= _WEEK_RANGE + _CLOCK_TOLERANCE), days)
    clocked = (nights >= _NIGHT_COUNT) | (weeks >= _WEEK_COUNT)
    # Clocked shifts do not count as frequent ones; nor do siblings, which may move at the same time.
    apart, like = _compared(at, size, at, size)
    often = np.sum(like & ~clocked[None, :] & (apart != 0) & (np.abs(apart) <= _OFTEN_MINUTES), axis=1)
    return np.asarray(~clocked & (often < _OFTEN_COUNT))


def _compared(at: Minutes, size: Values, other_at: Minutes, other_size: Values) -> tuple[Minutes, Flags]:
    """Per shift (row) and other shift (column): minutes between them, and whether the other is similar."""
    large = np.abs(other_size)[None, :] >= _SIMILAR_SHARE * np.abs(size)[:, None]
    return other_at[None, :] - at[:, None], np.asarray((np.sign(other_size)[None, :] == np.sign(size)[:, None]) & large)


def _days(apart: Minutes, period: int) -> Minutes:
    return np.asarray(np.rint(apart / period).astype(np.int64))


def _near(apart: Minutes, period: int) -> Flags:
    """At the same time of the day, or week, as another one."""
    periods = _days(apart, period)
    return np.asarray((periods != 0) & (np.abs(apart - periods * period) <= _CLOCK_TOLERANCE))


def _distinct(mask: Flags, days: Minutes) -> Minutes:
    return np.array([len(np.unique(row[selected])) for row, selected in zip(days, mask, strict=True)], dtype=np.int64)

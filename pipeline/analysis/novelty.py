"""Which shifts are news: one that comes every night, or again and again, is how that series always goes.

Pure arithmetic over numpy arrays.
"""

import numpy as np
import numpy.typing as npt

from pipeline.analysis.noise import Values

_DAY = 1440
_WEEK = 7 * _DAY
_CLOCK_TOLERANCE = 30
"""Minutes by which what comes every day may come earlier or later."""

_NIGHT_COUNT, _NIGHT_RANGE = 3, 14 * _DAY
"""On so many other days at this time of day, within so many minutes before and after."""

_WEEK_COUNT, _WEEK_RANGE = 2, 28 * _DAY
"""In so many other weeks at this time of the week."""

_OFTEN_COUNT, _OFTEN_MINUTES = 3, _WEEK
"""So many others at any time, within so many minutes before and after."""

_SIMILAR_SHARE = 0.4
"""Share of the size of a shift that others must have to be like it."""

Minutes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def is_novel(at: Minutes, size: Values, sibling_at: Minutes, sibling_size: Values) -> Flags:
    """Of the shifts of one series, those that are none of the usual ones.

    Args:
        at: minutes since 1970, in order.
        size: by how much it rose or, negative, fell.
        kin_at: the same of this series and of all that go by the same clock, in any order: a client that connects
            anew every day is another channel every day, and its batch is nevertheless that of every night.
        kin_size: by how much these rose or fell.
    """
    apart, like = _compared(at, size, sibling_at, sibling_size)
    days = _days(apart, _DAY)
    nights = _distinct(like & _near(apart, _DAY) & (np.abs(apart) <= _NIGHT_RANGE + _CLOCK_TOLERANCE), days)
    weeks = _distinct(like & _near(apart, _WEEK) & (np.abs(apart) <= _WEEK_RANGE + _CLOCK_TOLERANCE), days)
    clocked = (nights >= _NIGHT_COUNT) | (weeks >= _WEEK_COUNT)
    # What comes by the clock says nothing of what comes at any time; nor do others, which may move all at once.
    apart, like = _compared(at, size, at, size)
    often = np.sum(like & ~clocked[None, :] & (apart != 0) & (np.abs(apart) <= _OFTEN_MINUTES), axis=1)
    return np.asarray(~clocked & (often < _OFTEN_COUNT))


def _compared(at: Minutes, size: Values, other_at: Minutes, other_size: Values) -> tuple[Minutes, Flags]:
    """A row a shift, a column one of the others: minutes from one to the other, and whether that one is like it."""
    large = np.abs(other_size)[None, :] >= _SIMILAR_SHARE * np.abs(size)[:, None]
    return other_at[None, :] - at[:, None], np.asarray((np.sign(other_size)[None, :] == np.sign(size)[:, None]) & large)


def _days(apart: Minutes, period: int) -> Minutes:
    return np.asarray(np.rint(apart / period).astype(np.int64))


def _near(apart: Minutes, period: int) -> Flags:
    """At the same time of the day, or week, of another one."""
    periods = _days(apart, period)
    return np.asarray((periods != 0) & (np.abs(apart - periods * period) <= _CLOCK_TOLERANCE))


def _distinct(mask: Flags, days: Minutes) -> Minutes:
    return np.array([len(np.unique(row[selected])) for row, selected in zip(days, mask, strict=True)], dtype=np.int64)

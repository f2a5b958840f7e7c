"""Where the level of a series shifted: medians of the minutes before and after, held against how it moves anyway.

Pure arithmetic over numpy arrays. A shift is told where the minutes after it keep apart from those before it: by
several of their spreads, by a size that matters, at once and not bit by bit, and by more than twice what the medians
moved by in the hours before.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from pipeline.analysis.noise import Noise, Values

BEFORE = 60
"""Minutes that tell the level before, at most; `_FEW` at least."""

LASTING = 45
"""Minutes that a level must last to be sure: a burst, and what it leaves to be worked off, is no news."""

HISTORY = 240
"""Minutes before a shift that it may depend on, at most."""

_FEW = 20


@dataclass(frozen=True, slots=True)
class Strict:
    """How far a shift must stand out.

    Attributes:
        restless: times as far as one median of `Look.after` minutes lay from the next in the hours before.
        apart: share of the minutes on either side that lie beyond the middle between both levels.
    """

    restless: float
    apart: float


@dataclass(frozen=True, slots=True)
class Look:
    """One way to look for shifts.

    Attributes:
        after: minutes that tell the level after.
        shortest: minutes that a level must last to be found at all: what comes often tells what is usual.
        lasting: minutes that it must last to be sure.
        spreads: of single minutes, that a shift must have to be found at all.
        maybe, sure: how far it must stand out to be found, and to be told by itself.
        times: of the spreads that make a shift of a measure sure.
        spikes: what ends within `LASTING` minutes is one shift, and no new level.
    """

    after: int
    shortest: int
    lasting: int
    spreads: float
    maybe: Strict
    sure: Strict
    times: float = 1.0
    spikes: bool = False

    @property
    def seen(self) -> int:
        """Minutes from a shift to where it can be sure: the first place that moves may lie a few before it."""
        return self.lasting + self.after // 4


PATIENT = Look(20, 25, LASTING, 2.0, Strict(1.5, 0.8), Strict(5.0, 0.85))
"""The median of 20 minutes scatters by a quarter of single ones: two of their spreads are eight of its own."""

QUICK = Look(10, 10, 12, 4.0, Strict(1.5, 0.8), Strict(6.0, 0.9), 2.0, spikes=True)
"""Tells what stands out very far before it is known to last."""

_AT_ONCE = 0.6
"""Share of the shift that is there between the `Look.after` minutes before and those after."""

_MISSING = 6
"""Minutes that may be missing between the first and the last of `Look.shortest`."""

_LEFT = 2.5
"""Spreads beyond which a minute is no longer of the level before."""

_NORMAL = 1.349
"""The distance of the quartiles of a normal distribution, in standard deviations."""

Minutes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """One shift.

    Attributes:
        at: the first minute on the new level, counted like the columns of what was looked at.
        before, after: medians.
        score: the shift in robust spreads of the minutes before; negative where it fell.
        minutes: how many the new level was seen.
        sure: it stands out far enough to be told by itself.
        back: it goes back to where the level was in the hours before.
    """

    at: int
    before: float
    after: float
    score: float
    minutes: int
    sure: bool = False
    back: bool = False


def moving(values: Values, noise: Noise) -> npt.NDArray[np.int64]:
    """Of a matrix of series by minutes, the rows that vary enough for a shift: most queues stand still."""
    most = np.max(np.where(np.isnan(values), -np.inf, values), axis=1)
    least = np.min(np.where(np.isnan(values), np.inf, values), axis=1)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((most > least) & (most - least >= noise.size(least, least * 0)))


def shifts(values: Values, noise: Noise, look: Look = PATIENT) -> list[Found]:
    """The shifts of one series of minutes, in their order; NaN where a minute is not known."""
    known = np.flatnonzero(~np.isnan(values))
    level = values[known]
    found: list[Found] = []
    begin = 0
    while (one := _next(level[begin:], known[begin:], noise, look)) is not None:
        place = begin + one.at
        if found:
            found[-1] = _seen(found[-1], level, place)
        over = _over(one, noise.flat(level[place:]), noise, look)
        found.append(replace(one, at=place, minutes=over))
        begin = place + over
    if found:
        found[-1] = _seen(found[-1], level, len(level))
    return [replace(one, at=int(known[one.at])) for one in found]


def _next(level: Values, known: Minutes, noise: Noise, look: Look) -> Found | None:
    """The first shift, `at` counted among the known minutes; None without any."""
    if len(level) < _FEW + look.shortest:
        return None
    stretch = _Stretch(level, known, noise, look)
    for place in stretch.candidates():
        if stretch.holds(place, look.maybe, look.shortest):
            return stretch.told(place)
    return None


class _Stretch:
    """One stretch of known minutes on one level, and what may come after it.

    Arrays are by place: the shift would be between the minute before it and it.
    """

    def __init__(self, level: Values, known: Minutes, noise: Noise, look: Look) -> None:
        self._known, self._noise, self._look = known, noise, look
        self._flat = noise.flat(level)
        self._places = np.arange(_FEW, len(level) - look.shortest + 1)
        windows = np.sort(sliding_window_view(level, look.after), axis=1)
        self._medians = _middle(windows)
        self._flat_medians = noise.flat(self._medians)
        padded = np.concatenate([np.full(BEFORE, np.nan), level])
        # NaN is sorted to the end.
        earlier = np.sort(sliding_window_view(padded, BEFORE)[self._places], axis=1)
        held = np.minimum(self._places, BEFORE)
        self._before = _part(earlier, held, 0.5)
        quartiles = noise.flat(_part(earlier, held, 0.75)) - noise.flat(_part(earlier, held, 0.25))
        self._spread = np.maximum(quartiles / _NORMAL, noise.least(self._before))
        self._after = self._medians[self._places]
        self._shift = noise.flat(self._after) - noise.flat(self._before)

    def candidates(self) -> list[int]:
        """Places with a large shift of the medians."""
        large = np.abs(self._shift) >= self._look.spreads * self._spread
        large &= np.abs(self._after - self._before) >= self._noise.size(self._before, self._after)
        shortest = self._look.shortest
        large &= self._known[self._places + shortest - 1] - self._known[self._places] < shortest + _MISSING
        return [int(place) for place in self._places[large]]

    def holds(self, place: int, strict: Strict, lasting: int) -> bool:
        """Whether both sides keep apart, at once, and farther than ever in the hours before."""
        index, after = place - _FEW, self._look.after
        shift = self._shift[index]
        way = np.sign(shift)
        middle = self._usual(index) + shift / 2
        earlier, later = self._flat[max(0, place - BEFORE) : place], self._flat[place : place + lasting]
        if np.mean((earlier - middle) * way < 0) < strict.apart or np.mean((later - middle) * way > 0) < strict.apart:
            return False
        at_once = (self._flat_medians[place] - self._flat_medians[place - after]) * way
        if at_once < _AT_ONCE * abs(shift):
            return False
        past = self._flat_medians[place % after : place - after + 1 : after][-HISTORY // after :]
        return bool(np.max(np.abs(np.diff(past)), initial=0.0) * strict.restless <= at_once)

    def sure(self, place: int) -> bool:
        """Whether it stands out far, and is seen to last."""
        index = place - _FEW
        if index >= len(self._shift):
            return False
        large = abs(self._shift[index]) >= self._look.times * self._noise.sure * self._spread[index]
        lasts = len(self._flat) - place >= self._look.seen
        return bool(large and lasts and self.holds(place, self._look.sure, self._look.lasting))

    def back(self, place: int) -> bool:
        """Whether the level after is nearer to that of the hours before than the level before."""
        usual = np.median(self._flat[max(0, place - HISTORY) : place])
        after = self._usual(place - _FEW) + self._shift[place - _FEW]
        return bool(abs(after - usual) < abs(self._usual(place - _FEW) - usual))

    def _usual(self, index: int) -> float:
        return float(self._noise.flat(self._before[index : index + 1])[0])

    def told(self, place: int) -> Found:
        """The shift near this place, at the very minute."""
        index = place - _FEW
        before, spread, way = self._before[index], self._spread[index], np.sign(self._shift[index])
        usual, after = self._usual(index), self._look.after
        end = min(len(self._flat), place + 2 * after)
        later = np.median(self._flat[place + 2 : end])
        begin = max(_FEW // 2, place - after // 2)
        window = self._flat[begin:end]
        # What it costs to be on the wrong level, minute by minute, for each place of the shift.
        stay = np.concatenate([[0.0], np.cumsum(np.abs(window - usual))])
        gone = np.concatenate([[0.0], np.cumsum(np.abs(window - later))])
        cost = (stay + gone[-1] - gone)[: after + 1]
        at = begin + int(np.argmin(cost))
        # What grows bit by bit left the level before it was nearer to the new one.
        while at > begin and (self._flat[at - 1] - usual) * way > _LEFT * spread:
            at -= 1
        return Found(
            max(at, 1),
            float(before),
            float(self._after[index]),
            float(self._shift[index] / spread),
            0,
            # At the first place that moves, part of what comes after is still on the level before.
            self.sure(place) or self.sure(max(at, _FEW)),
            self.back(place),
        )


def _over(one: Found, later: Values, noise: Noise, look: Look) -> int:
    """Minutes after which a spike is over; 0 where it is none, or lasts."""
    before, after = noise.flat(np.array([one.before, one.after]))
    gone = (later - (before + after) / 2) * np.sign(after - before) <= 0
    if not look.spikes or len(gone) < look.shortest + look.after:
        return 0
    ended = np.flatnonzero(sliding_window_view(gone, look.after).mean(axis=1) > look.sure.apart)
    return int(ended[0]) if len(ended) and ended[0] < LASTING else 0


def _seen(one: Found, level: Values, end: int) -> Found:
    """With the level and the minutes that it was seen until the next shift."""
    minutes = one.minutes or end - one.at
    later = level[one.at : one.at + min(minutes, LASTING)]
    return replace(one, after=float(np.median(later)), minutes=minutes)


def _middle(windows: Values) -> Values:
    half = windows.shape[1] // 2
    return np.asarray((windows[:, half - 1] + windows[:, half]) / 2 if windows.shape[1] % 2 == 0 else windows[:, half])


def _part(ordered: Values, held: Minutes, share: float) -> Values:
    """A quantile of the first `held` of each ordered row, between its neighbours."""
    place = (held - 1) * share
    low = place.astype(np.int64)
    rows = np.arange(len(ordered))
    below, above = ordered[rows, low], ordered[rows, np.minimum(low + 1, held - 1)]
    return np.asarray(below + (above - below) * (place - low))

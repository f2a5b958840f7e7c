"""Where the level of a series shifted: medians of the minutes before and after, held against how it moves anyway.

Pure arithmetic over numpy arrays. A shift is told where the minutes after it keep apart from those before it: by
several of their spreads, by a size that matters, at once and not bit by bit, and by more than twice what the medians
moved by in the hours before.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from pipeline.analysis.noise import NoiseModel, Values

BEFORE_MINUTES = 60
"""Minutes that tell the level before, at most; `_FEW` at least."""

LASTING_MINUTES = 45
"""Minutes that a level must last to be sure: a burst, and what it leaves to be worked off, is no news."""

HISTORY_MINUTES = 240
"""Minutes before a shift that it may depend on, at most."""

_MIN_BEFORE = 20


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How far a shift must stand out.

    Attributes:
        restless: times as far as one median of `Look.after` minutes lay from the next in the hours before.
        apart: share of the minutes on either side that lie beyond the middle between both levels.
    """

    restlessness: float
    separation: float


@dataclass(frozen=True, slots=True)
class DetectorConfig:
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
    maybe: Thresholds
    sure: Thresholds
    spread_factor: float = 1.0
    spikes: bool = False

    @property
    def minutes_until_sure(self) -> int:
        """Minutes from a shift to where it can be sure: the first place that moves may lie a few before it."""
        return self.lasting + self.after // 4


SLOW = DetectorConfig(20, 25, LASTING_MINUTES, 2.0, Thresholds(1.5, 0.8), Thresholds(5.0, 0.85))
"""The median of 20 minutes scatters by a quarter of single ones: two of their spreads are eight of its own."""

FAST = DetectorConfig(10, 10, 12, 4.0, Thresholds(1.5, 0.8), Thresholds(6.0, 0.9), 2.0, spikes=True)
"""Tells what stands out very far before it is known to last."""

_ABRUPT_SHARE = 0.6
"""Share of the shift that is there between the `Look.after` minutes before and those after."""

_MAX_MISSING = 6
"""Minutes that may be missing between the first and the last of `Look.shortest`."""

_LEFT_SPREADS = 2.5
"""Spreads beyond which a minute is no longer of the level before."""

_NORMAL = 1.349
"""The distance of the quartiles of a normal distribution, in standard deviations."""

Minutes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DetectedShift:
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


def find_moving(values: Values, noise: NoiseModel) -> npt.NDArray[np.int64]:
    """Of a matrix of series by minutes, the rows that vary enough for a shift: most queues stand still."""
    most = np.max(np.where(np.isnan(values), -np.inf, values), axis=1)
    least = np.min(np.where(np.isnan(values), np.inf, values), axis=1)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((most > least) & (most - least >= noise.min_difference(least, least * 0)))


def shifts(values: Values, noise: NoiseModel, config: DetectorConfig = SLOW) -> list[DetectedShift]:
    """The shifts of one series of minutes, in their order; NaN where a minute is not known."""
    known = np.flatnonzero(~np.isnan(values))
    level = values[known]
    found: list[DetectedShift] = []
    begin = 0
    while (one := _next(level[begin:], known[begin:], noise, config)) is not None:
        place = begin + one.at
        if found:
            found[-1] = _with_duration(found[-1], level, place)
        over = _spike_end(one, noise.to_scale(level[place:]), noise, config)
        found.append(replace(one, at=place, minutes=over))
        begin = place + over
    if found:
        found[-1] = _with_duration(found[-1], level, len(level))
    return [replace(one, at=int(known[one.at])) for one in found]


def _next(level: Values, known: Minutes, noise: NoiseModel, config: DetectorConfig) -> DetectedShift | None:
    """The first shift, `at` counted among the known minutes; None without any."""
    if len(level) < _MIN_BEFORE + config.shortest:
        return None
    segment = _Segment(level, known, noise, config)
    for place in segment.candidates():
        if segment.holds(place, config.maybe, config.shortest):
            return segment.measure_shift(place)
    return None


class _Segment:
    """One stretch of known minutes on one level, and what may come after it.

    Arrays are by place: the shift would be between the minute before it and it.
    """

    def __init__(self, level: Values, known: Minutes, noise: NoiseModel, config: DetectorConfig) -> None:
        self._known, self._noise, self._look = known, noise, config
        self._flat = noise.to_scale(level)
        self._places = np.arange(_MIN_BEFORE, len(level) - config.shortest + 1)
        windows = np.sort(sliding_window_view(level, config.after), axis=1)
        self._medians = _medians_of(windows)
        self._flat_medians = noise.to_scale(self._medians)
        padded = np.concatenate([np.full(BEFORE_MINUTES, np.nan), level])
        # NaN is sorted to the end.
        earlier = np.sort(sliding_window_view(padded, BEFORE_MINUTES)[self._places], axis=1)
        counts = np.minimum(self._places, BEFORE_MINUTES)
        self._before = _quantiles_of(earlier, counts, 0.5)
        quartiles = noise.to_scale(_quantiles_of(earlier, counts, 0.75)) - noise.to_scale(
            _quantiles_of(earlier, counts, 0.25)
        )
        self._spread = np.maximum(quartiles / _NORMAL, noise.min_scatter(self._before))
        self._after = self._medians[self._places]
        self._shift = noise.to_scale(self._after) - noise.to_scale(self._before)

    def candidates(self) -> list[int]:
        """Places with a large shift of the medians."""
        large = np.abs(self._shift) >= self._look.spreads * self._spread
        large &= np.abs(self._after - self._before) >= self._noise.min_difference(self._before, self._after)
        shortest = self._look.shortest
        large &= self._known[self._places + shortest - 1] - self._known[self._places] < shortest + _MAX_MISSING
        return [int(place) for place in self._places[large]]

    def holds(self, place: int, strict: Thresholds, lasting: int) -> bool:
        """Whether both sides keep apart, at once, and farther than ever in the hours before."""
        index, after = place - _MIN_BEFORE, self._look.after
        shift = self._shift[index]
        sign = np.sign(shift)
        midpoint = self._level_before(index) + shift / 2
        earlier, later = self._flat[max(0, place - BEFORE_MINUTES) : place], self._flat[place : place + lasting]
        if (
            np.mean((earlier - midpoint) * sign < 0) < strict.separation
            or np.mean((later - midpoint) * sign > 0) < strict.separation
        ):
            return False
        abrupt = (self._flat_medians[place] - self._flat_medians[place - after]) * sign
        if abrupt < _ABRUPT_SHARE * abs(shift):
            return False
        previous_medians = self._flat_medians[place % after : place - after + 1 : after][-HISTORY_MINUTES // after :]
        return bool(np.max(np.abs(np.diff(previous_medians)), initial=0.0) * strict.restlessness <= abrupt)

    def sure(self, place: int) -> bool:
        """Whether it stands out far, and is seen to last."""
        index = place - _MIN_BEFORE
        if index >= len(self._shift):
            return False
        large = abs(self._shift[index]) >= self._look.spread_factor * self._noise.sure_spreads * self._spread[index]
        lasts = len(self._flat) - place >= self._look.minutes_until_sure
        return bool(large and lasts and self.holds(place, self._look.sure, self._look.lasting))

    def back(self, place: int) -> bool:
        """Whether the level after is nearer to that of the hours before than the level before."""
        level_before = np.median(self._flat[max(0, place - HISTORY_MINUTES) : place])
        after = self._level_before(place - _MIN_BEFORE) + self._shift[place - _MIN_BEFORE]
        return bool(abs(after - level_before) < abs(self._level_before(place - _MIN_BEFORE) - level_before))

    def _level_before(self, index: int) -> float:
        return float(self._noise.to_scale(self._before[index : index + 1])[0])

    def measure_shift(self, place: int) -> DetectedShift:
        """The shift near this place, at the very minute."""
        index = place - _MIN_BEFORE
        before, spread, sign = self._before[index], self._spread[index], np.sign(self._shift[index])
        level_before, after = self._level_before(index), self._look.after
        end = min(len(self._flat), place + 2 * after)
        later = np.median(self._flat[place + 2 : end])
        begin = max(_MIN_BEFORE // 2, place - after // 2)
        window = self._flat[begin:end]
        # What it costs to be on the wrong level, minute by minute, for each place of the shift.
        stay = np.concatenate([[0.0], np.cumsum(np.abs(window - level_before))])
        on_new_level = np.concatenate([[0.0], np.cumsum(np.abs(window - later))])
        cost = (stay + on_new_level[-1] - on_new_level)[: after + 1]
        at = begin + int(np.argmin(cost))
        # What grows bit by bit left the level before it was nearer to the new one.
        while at > begin and (self._flat[at - 1] - level_before) * sign > _LEFT_SPREADS * spread:
            at -= 1
        return DetectedShift(
            max(at, 1),
            float(before),
            float(self._after[index]),
            float(self._shift[index] / spread),
            0,
            # At the first place that moves, part of what comes after is still on the level before.
            self.sure(place) or self.sure(max(at, _MIN_BEFORE)),
            self.back(place),
        )


def _spike_end(one: DetectedShift, later: Values, noise: NoiseModel, config: DetectorConfig) -> int:
    """Minutes after which a spike is over; 0 where it is none, or lasts."""
    before, after = noise.to_scale(np.array([one.before, one.after]))
    on_new_level = (later - (before + after) / 2) * np.sign(after - before) <= 0
    if not config.spikes or len(on_new_level) < config.shortest + config.after:
        return 0
    ended = np.flatnonzero(sliding_window_view(on_new_level, config.after).mean(axis=1) > config.sure.separation)
    return int(ended[0]) if len(ended) and ended[0] < LASTING_MINUTES else 0


def _with_duration(one: DetectedShift, level: Values, end: int) -> DetectedShift:
    """With the level and the minutes that it was seen until the next shift."""
    minutes = one.minutes or end - one.at
    later = level[one.at : one.at + min(minutes, LASTING_MINUTES)]
    return replace(one, after=float(np.median(later)), minutes=minutes)


def _medians_of(windows: Values) -> Values:
    half = windows.shape[1] // 2
    return np.asarray((windows[:, half - 1] + windows[:, half]) / 2 if windows.shape[1] % 2 == 0 else windows[:, half])


def _quantiles_of(ordered: Values, counts: Minutes, share: float) -> Values:
    """A quantile of the first `held` of each ordered row, between its neighbours."""
    place = (counts - 1) * share
    low = place.astype(np.int64)
    rows = np.arange(len(ordered))
    below, above = ordered[rows, low], ordered[rows, np.minimum(low + 1, counts - 1)]
    return np.asarray(below + (above - below) * (place - low))

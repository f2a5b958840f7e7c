"""Detect level shifts of a series by comparing the medians of the minutes before and after.

Pure arithmetic over numpy arrays. A shift is accepted if its size is several spreads and a relevant difference, if it
is abrupt rather than gradual, and if it exceeds the moves of the medians in the hours before.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from pipeline.analysis.noise import NoiseModel, Values

# Maximum minutes that determine the level before; `_MIN_BEFORE` is the minimum.
BEFORE_MINUTES = 60

# Minutes that a level must last before the shift is sure: a burst and its backlog are not a new level.
LASTING_MINUTES = 45

# Maximum minutes before a shift that it depends on.
HISTORY_MINUTES = 240

_MIN_BEFORE = 20


@dataclass(frozen=True, slots=True)
class ShiftThresholds:
    """How far a shift must stand out.

    Attributes:
        restlessness: multiple of the largest step between consecutive medians of `DetectorConfig.after` minutes in the
            hours before.
        separation: share of the minutes on either side that lie on their side of the midpoint between both levels.
    """

    restlessness: float
    separation: float


@dataclass(frozen=True, slots=True)
class DetectorConfig:
    """The parameters of a detector.

    Attributes:
        after: minutes that determine the level after.
        shortest: minutes that a level must last for the shift to be a candidate. Candidates also show what is usual.
        lasting: minutes that it must last for the shift to be sure.
        spreads: spreads of single minutes that a shift needs to be a candidate.
        maybe, sure: thresholds of a candidate, and of a shift that is reported on its own.
        spread_factor: multiplies `NoiseModel.sure_spreads`.
        spikes: a rise and its fall within `LASTING_MINUTES` are one shift, and so are a fall and its rise.
    """

    after: int
    shortest: int
    lasting: int
    spreads: float
    maybe: ShiftThresholds
    sure: ShiftThresholds
    spread_factor: float = 1.0
    spikes: bool = False

    @property
    def minutes_until_sure(self) -> int:
        """Minutes from a shift until it can be sure; its first candidate may lie a few minutes before it."""
        return self.lasting + self.after // 4


# The median of 20 minutes has a quarter of the spread of a single minute, so 2 spreads of minutes are 8 of the median.
SLOW = DetectorConfig(20, 25, LASTING_MINUTES, 2.0, ShiftThresholds(1.5, 0.8), ShiftThresholds(5.0, 0.85))

# Reports very large shifts before they are known to last.
FAST = DetectorConfig(10, 10, 12, 4.0, ShiftThresholds(1.5, 0.8), ShiftThresholds(6.0, 0.9), 2.0, spikes=True)

# Share of the shift that must happen between the `DetectorConfig.after` minutes before and those after.
_ABRUPT_SHARE = 0.6

# Minutes that may be missing among the first `DetectorConfig.shortest`.
_MAX_MISSING = 6

# Distance from the level before, in spreads, beyond which a minute no longer belongs to it.
_LEFT_SPREADS = 2.5

# Interquartile range of a normal distribution, in standard deviations.
_NORMAL = 1.349

Minutes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DetectedShift:
    """One shift.

    Attributes:
        at: index of the first minute on the new level.
        before, after: medians.
        score: the shift in robust spreads of the minutes before; negative for a fall.
        minutes: duration of the new level so far.
        sure: it is large enough, and lasted long enough, to be reported on its own.
        back: it returns to the level of the hours before.
    """

    at: int
    before: float
    after: float
    score: float
    minutes: int
    sure: bool = False
    back: bool = False


def find_moving(values: Values, noise: NoiseModel) -> npt.NDArray[np.int64]:
    """The rows of a matrix (series by minutes) that vary enough for a shift; most queues do not."""
    most = np.max(np.where(np.isnan(values), -np.inf, values), axis=1)
    least = np.min(np.where(np.isnan(values), np.inf, values), axis=1)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero((most > least) & (most - least >= noise.min_difference(least, least * 0)))


def shifts(values: Values, noise: NoiseModel, config: DetectorConfig = SLOW) -> list[DetectedShift]:
    """The shifts of one series of minutes, in order of time; NaN is unknown."""
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
    """The first shift, or None; its `at` is an index into the known minutes."""
    if len(level) < _MIN_BEFORE + config.shortest:
        return None
    segment = _Segment(level, known, noise, config)
    for place in segment.candidates():
        if segment.holds(place, config.maybe, config.shortest):
            return segment.measure_shift(place)
    return None


class _Segment:
    """Known minutes of a series from the last shift on, searched for the next one.

    A place is the index of the first minute after a possible shift. The arrays have one entry per place.
    """

    def __init__(self, level: Values, known: Minutes, noise: NoiseModel, config: DetectorConfig) -> None:
        self._known, self._noise, self._config = known, noise, config
        self._scaled = noise.to_scale(level)
        self._places = np.arange(_MIN_BEFORE, len(level) - config.shortest + 1)
        windows = np.sort(sliding_window_view(level, config.after), axis=1)
        self._medians = _medians_of(windows)
        self._scaled_medians = noise.to_scale(self._medians)
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
        """Places where the medians before and after differ enough."""
        large = np.abs(self._shift) >= self._config.spreads * self._spread
        large &= np.abs(self._after - self._before) >= self._noise.min_difference(self._before, self._after)
        shortest = self._config.shortest
        large &= self._known[self._places + shortest - 1] - self._known[self._places] < shortest + _MAX_MISSING
        return [int(place) for place in self._places[large]]

    def holds(self, place: int, limits: ShiftThresholds, lasting: int) -> bool:
        """Whether both sides are separated, by an abrupt move, larger than those of the hours before."""
        index, after = place - _MIN_BEFORE, self._config.after
        shift = self._shift[index]
        sign = np.sign(shift)
        midpoint = self._level_before(index) + shift / 2
        earlier, later = self._scaled[max(0, place - BEFORE_MINUTES) : place], self._scaled[place : place + lasting]
        if (
            np.mean((earlier - midpoint) * sign < 0) < limits.separation
            or np.mean((later - midpoint) * sign > 0) < limits.separation
        ):
            return False
        abrupt = (self._scaled_medians[place] - self._scaled_medians[place - after]) * sign
        if abrupt < _ABRUPT_SHARE * abs(shift):
            return False
        previous_medians = self._scaled_medians[place % after : place - after + 1 : after][-HISTORY_MINUTES // after :]
        return bool(np.max(np.abs(np.diff(previous_medians)), initial=0.0) * limits.restlessness <= abrupt)

    def sure(self, place: int) -> bool:
        """Whether a shift at this place is large enough, and has lasted long enough, to be sure."""
        index = place - _MIN_BEFORE
        if index >= len(self._shift):
            return False
        large = abs(self._shift[index]) >= self._config.spread_factor * self._noise.sure_spreads * self._spread[index]
        lasts = len(self._scaled) - place >= self._config.minutes_until_sure
        return bool(large and lasts and self.holds(place, self._config.sure, self._config.lasting))

    def back(self, place: int) -> bool:
        """Whether the shift returns to the usual level: the level after is nearer to it than the level before."""
        usual = np.median(self._scaled[max(0, place - HISTORY_MINUTES) : place])
        after = self._level_before(place - _MIN_BEFORE) + self._shift[place - _MIN_BEFORE]
        return bool(abs(after - usual) < abs(self._level_before(place - _MIN_BEFORE) - usual))

    def _level_before(self, index: int) -> float:
        return float(self._noise.to_scale(self._before[index : index + 1])[0])

    def measure_shift(self, place: int) -> DetectedShift:
        """The shift near this place, with its exact minute."""
        index = place - _MIN_BEFORE
        before, spread, sign = self._before[index], self._spread[index], np.sign(self._shift[index])
        level_before, after = self._level_before(index), self._config.after
        end = min(len(self._scaled), place + 2 * after)
        later = np.median(self._scaled[place + 2 : end])
        begin = max(_MIN_BEFORE // 2, place - after // 2)
        window = self._scaled[begin:end]
        # For each possible place, the total distance of all minutes from their level.
        stay = np.concatenate([[0.0], np.cumsum(np.abs(window - level_before))])
        leave = np.concatenate([[0.0], np.cumsum(np.abs(window - later))])
        cost = (stay + leave[-1] - leave)[: after + 1]
        at = begin + int(np.argmin(cost))
        # A gradual change starts before the values are nearer to the new level.
        while at > begin and (self._scaled[at - 1] - level_before) * sign > _LEFT_SPREADS * spread:
            at -= 1
        return DetectedShift(
            max(at, 1),
            float(before),
            float(self._after[index]),
            float(self._shift[index] / spread),
            0,
            # At the first candidate place, some of the minutes after it are still on the old level.
            self.sure(place) or self.sure(max(at, _MIN_BEFORE)),
            self.back(place),
        )


def _spike_end(one: DetectedShift, later: Values, noise: NoiseModel, config: DetectorConfig) -> int:
    """Duration of a spike in minutes; 0 if it is not a spike, or lasts."""
    before, after = noise.to_scale(np.array([one.before, one.after]))
    back_on_old_level = (later - (before + after) / 2) * np.sign(after - before) <= 0
    if not config.spikes or len(back_on_old_level) < config.shortest + config.after:
        return 0
    ended = np.flatnonzero(sliding_window_view(back_on_old_level, config.after).mean(axis=1) > config.sure.separation)
    return int(ended[0]) if len(ended) and ended[0] < LASTING_MINUTES else 0


def _with_duration(one: DetectedShift, level: Values, end: int) -> DetectedShift:
    """The shift with its duration, up to index `end`, and the median of the new level."""
    minutes = one.minutes or end - one.at
    later = level[one.at : one.at + min(minutes, LASTING_MINUTES)]
    return replace(one, after=float(np.median(later)), minutes=minutes)


def _medians_of(windows: Values) -> Values:
    half = windows.shape[1] // 2
    return np.asarray((windows[:, half - 1] + windows[:, half]) / 2 if windows.shape[1] % 2 == 0 else windows[:, half])


def _quantiles_of(ordered: Values, counts: Minutes, share: float) -> Values:
    """A quantile of the first `counts` values of each sorted row, interpolated."""
    place = (counts - 1) * share
    low = place.astype(np.int64)
    rows = np.arange(len(ordered))
    below, above = ordered[rows, low], ordered[rows, np.minimum(low + 1, counts - 1)]
    return np.asarray(below + (above - below) * (place - low))

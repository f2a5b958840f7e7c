"""Noise models: how much a measure varies in normal operation. Shifts are compared with that.

Pure arithmetic over numpy arrays; NaN is unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """The noise of one kind of measure.

    Attributes:
        to_scale: transforms values to a scale on which the scatter does not depend on the level.
        from_scale: the inverse.
        min_scatter: smallest scatter of a value, on that scale.
        min_difference: smallest difference between two levels that matters, in the measure's unit.
        sure_spreads: number of spreads at which a shift is reported on its own.
        rises, falls: whether a rise or fall may be reported before it is known to last. Traffic and backlogs rise for a
            while on any day; a missing consumer or a long client latency deserves attention immediately.
    """

    to_scale: Callable[[Values], Values]
    from_scale: Callable[[Values], Values]
    min_scatter: Callable[[Values], Values]
    min_difference: Callable[[Values, Values], Values]
    sure_spreads: float = 6.0
    rises: bool = False
    falls: bool = False

    def reports_early(self, change: float) -> bool:
        """Whether a rise, or with a negative `change` a fall, may be reported before it is known to last."""
        return self.rises if change > 0 else self.falls


def _count_noise(per: float, share: float, min_difference: float, sure_spreads: float = 6.0) -> NoiseModel:
    """Return the noise model of event counts.

    A count of n scatters by at least sqrt(n), so 2*sqrt(n) has the same scatter at any level. `per` events are one unit
    of the measure. `share` is the minimum scatter relative to the level. A difference matters if it is at least
    `min_difference` units and at least half of the larger level.
    """

    def to_scale(value: Values) -> Values:
        return np.asarray(2.0 * np.sqrt(np.maximum(value, 0.0) * per))

    def min_scatter(value: Values) -> Values:
        return np.asarray(np.maximum(1.0, share * np.sqrt(np.maximum(value, 0.0) * per)))

    def from_scale(value: Values) -> Values:
        return np.asarray((np.maximum(value, 0.0) / 2.0) ** 2 / per)

    return NoiseModel(to_scale, from_scale, min_scatter, _min_difference(min_difference, 0.5), sure_spreads)


def _steady_noise(share: float, step: float, min_difference: float) -> NoiseModel:
    """Return the noise model of values with little scatter.

    The scatter is `step` for small values and `share` of the value for large ones. A difference matters if it is at
    least `min_difference` and at least five times `share` of the larger level.
    """

    def to_scale(value: Values) -> Values:
        return np.asarray(np.arcsinh(value / step) if share else value / step)

    def min_scatter(value: Values) -> Values:
        # `step` for small values, `share` of the value for large ones.
        return np.asarray(np.hypot(1.0, share * value / step) / np.hypot(1.0, value / step) if share else value * 0 + 1)

    def from_scale(value: Values) -> Values:
        return np.asarray(np.sinh(value) * step if share else value * step)

    return NoiseModel(to_scale, from_scale, min_scatter, _min_difference(min_difference, 5 * share))


def _min_difference(min_difference: float, share: float) -> Callable[[Values, Values], Values]:
    def enough(before: Values, after: Values) -> Values:
        return np.asarray(np.maximum(min_difference, share * np.maximum(np.abs(before), np.abs(after))))

    return enough


def noise(measure: str) -> NoiseModel:
    """The noise model of a measure, by its name in `ackscope.tables.CHANGES`."""
    what, _, quantile = measure.rpartition("_")
    if what and quantile in _QUANTILES:
        return _QUANTILES[quantile]
    if what and quantile == "failed":
        return _EARLY_SHARE
    return _BY_NAME.get(measure, _RATE)


_RATE = replace(_count_noise(per=60.0, share=0.1, min_difference=0.05), falls=True)
_WAITING = _count_noise(per=1.0, share=0.1, min_difference=10.0)
_BACKLOG = replace(_WAITING, sure_spreads=12.0)
_SHARE = _steady_noise(share=0.0, step=0.02, min_difference=0.1)
_EARLY_SHARE = replace(_SHARE, rises=True, falls=True)
_NUMBER = replace(_steady_noise(share=0.05, step=0.05, min_difference=1.0), rises=True, falls=True)
_QUANTILES = {
    # A histogram bucket is a factor of 1.36 wide; interpolation within it is accurate to about a tenth.
    "p50": replace(_steady_noise(share=0.08, step=0.0002, min_difference=0.001), rises=True),
    "p99": replace(_steady_noise(share=0.16, step=0.0005, min_difference=0.005), rises=True),
}
# All other measures are rates per second: counts of a minute divided by 60.
_BY_NAME: dict[str, NoiseModel] = {
    # Busy queues have a short backlog from time to time, which also fills the prefetch of their consumers.
    "ready": _BACKLOG,
    "unacked": _BACKLOG,
    "unconfirmed": _WAITING,
    "consumers": _NUMBER,
    "prefetch": _NUMBER,
    "fd_used": _steady_noise(share=0.06, step=10.0, min_difference=50.0),
    "sockets_used": _steady_noise(share=0.06, step=10.0, min_difference=50.0),
    "proc_used": _steady_noise(share=0.06, step=50.0, min_difference=300.0),
    "mem_used": _steady_noise(share=0.05, step=5e6, min_difference=5e7),
    "disk_free": _steady_noise(share=0.02, step=5e7, min_difference=5e8),
    "busy": _SHARE,
    "failed": _EARLY_SHARE,
    "at_ceiling": _SHARE,
    "inactive": _SHARE,
    "down": _EARLY_SHARE,
    "mem_alarm": _EARLY_SHARE,
    "disk_alarm": _EARLY_SHARE,
    "redelivered": replace(_RATE, rises=True),
}

"""How a measure scatters while nothing happens: the scale on which a shift of it is judged.

Pure arithmetic over numpy arrays, in which NaN is "not known".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """One way to scatter.

    Attributes:
        flat: takes values to a scale on which their scatter does not depend on their level.
        back: from there to values.
        least: of a value, the smallest scatter that it may have, on that scale.
        size: of the level before and after, the smallest difference that matters, in the measure's unit.
        sure: how many scatters make a shift stand out far enough to be told by itself.
        rises, falls: whether such a shift may be told before it is known to last. Traffic, and what waits for it, rises
            for a while on any day; that nobody works, or that a client waits long, is worth a look at once.
    """

    flat: Callable[[Values], Values]
    back: Callable[[Values], Values]
    least: Callable[[Values], Values]
    size: Callable[[Values, Values], Values]
    sure: float = 6.0
    rises: bool = False
    falls: bool = False

    def soon(self, way: float) -> bool:
        """Whether a rise, or of a negative `way` a fall, may be told before it is known to last."""
        return self.rises if way > 0 else self.falls


def _counts(per: float, share: float, size: float, sure: float = 6.0) -> Noise:
    """Events: a level of n scatters by the root of n at least, and twice the root scatters the same everywhere.

    `per` events make one unit of the measure, `share` of the level it scatters anyway, `size` units matter.
    """

    def flat(value: Values) -> Values:
        return np.asarray(2.0 * np.sqrt(np.maximum(value, 0.0) * per))

    def least(value: Values) -> Values:
        return np.asarray(np.maximum(1.0, share * np.sqrt(np.maximum(value, 0.0) * per)))

    def back(value: Values) -> Values:
        return np.asarray((np.maximum(value, 0.0) / 2.0) ** 2 / per)

    return Noise(flat, back, least, _matters(size, 0.5), sure)


def _steady(share: float, step: float, size: float) -> Noise:
    """Amounts that hardly scatter: by `share` of themselves or by `step`; `size`, and 5 shares, matter."""

    def flat(value: Values) -> Values:
        return np.asarray(np.arcsinh(value / step) if share else value / step)

    def least(value: Values) -> Values:
        # Of one step where the value is small, and of its share where it is large.
        return np.asarray(np.hypot(1.0, share * value / step) / np.hypot(1.0, value / step) if share else value * 0 + 1)

    def back(value: Values) -> Values:
        return np.asarray(np.sinh(value) * step if share else value * step)

    return Noise(flat, back, least, _matters(size, 5 * share))


def _matters(size: float, share: float) -> Callable[[Values, Values], Values]:
    def enough(before: Values, after: Values) -> Values:
        return np.asarray(np.maximum(size, share * np.maximum(np.abs(before), np.abs(after))))

    return enough


def noise(measure: str) -> Noise:
    """Of a measure by its name, as `ackscope.tables.CHANGES` tells them."""
    what, _, quantile = measure.rpartition("_")
    if what and quantile in _QUANTILES:
        return _QUANTILES[quantile]
    if what and quantile == "failed":
        return _SOON
    return _BY_NAME.get(measure, _RATE)


_RATE = replace(_counts(per=60.0, share=0.1, size=0.05), falls=True)
_WAITING = _counts(per=1.0, share=0.1, size=10.0)
_BACKLOG = replace(_WAITING, sure=12.0)
_SHARE = _steady(share=0.0, step=0.02, size=0.1)
_SOON = replace(_SHARE, rises=True, falls=True)
_NUMBER = replace(_steady(share=0.05, step=0.05, size=1.0), rises=True, falls=True)
_QUANTILES = {
    # A bucket of the histogram is a factor of 1.36 wide; the interpolation within it is good to about a tenth.
    "p50": replace(_steady(share=0.08, step=0.0002, size=0.001), rises=True),
    "p99": replace(_steady(share=0.16, step=0.0005, size=0.005), rises=True),
}
_BY_NAME: dict[str, Noise] = {
    # Queues that are almost full of work have a backlog now and then, which fills what their prefetch allows, too.
    "ready": _BACKLOG,
    "unacked": _BACKLOG,
    "unconfirmed": _WAITING,
    "consumers": _NUMBER,
    "prefetch": _NUMBER,
    "fd_used": _steady(share=0.06, step=10.0, size=50.0),
    "sockets_used": _steady(share=0.06, step=10.0, size=50.0),
    "proc_used": _steady(share=0.06, step=50.0, size=300.0),
    "mem_used": _steady(share=0.05, step=5e6, size=5e7),
    "disk_free": _steady(share=0.02, step=5e7, size=5e8),
    "busy": _SHARE,
    "failed": _SOON,
    "at_ceiling": _SHARE,
    "inactive": _SHARE,
    "down": _SOON,
    "mem_alarm": _SOON,
    "disk_alarm": _SOON,
    "redelivered": replace(_RATE, rises=True),
}
"""All others are rates, a second: counts of a minute by 60."""

"""Comparison of contenders that rotated over the same brokers: a least squares fit and its noise."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

Stretches = Sequence[Mapping[str, float]]
"""For each stretch, contender -> value above 0, always in the same order. In stretch n the contender at index p had
broker (p + n) modulo their number."""


class Compared(NamedTuple):
    """Values of the contenders, relative to the first one.

    Attributes:
        times: name -> multiple of the value of the first contender.
        covariance: of these, in their order; None with too few stretches to estimate noise.
    """

    times: dict[str, float]
    covariance: FloatArray | None

    def squared(self, first: str, second: str) -> float:
        """Return four times the covariance of two contenders: for one, the square of twice its standard error.

        Raises:
            ValueError: there is no covariance.
        """
        if self.covariance is None:
            raise ValueError("no figure is left to tell noise from")
        names = list(self.times)
        return 4 * float(self.covariance[names.index(first), names.index(second)])

    def noise(self, name: str) -> float:
        """Return twice the standard error of a contender."""
        return math.sqrt(self.squared(name, name))


def compared(stretches: Stretches) -> Compared:
    """Fit each value as the product of a stretch, a broker and a contender effect, and noise.

    The effects are multiplied because a slow machine increases all CPU times in proportion. The fit is a two-way layout
    of the logarithms with a treatment effect (a Latin square if the rotations are complete). The covariance is that of
    the logarithms times both factors (delta method).
    """
    names = list(stretches[0])
    many = len(names)
    # The first contender and the first broker are the reference.
    others, of_stretch = np.eye(many)[:, 1:], np.eye(len(stretches))
    layout = np.array(
        [
            np.concatenate((others[place], others[(place + number) % many], of_stretch[number]))
            for number in range(len(stretches))
            for place in range(many)
        ]
    )
    seen = np.array([math.log(stretch[name]) for stretch in stretches for name in names])
    solved, *_ = np.linalg.lstsq(layout, seen, rcond=None)
    factors = np.exp(solved[: many - 1])
    times = dict(zip(names[1:], map(float, factors), strict=True))
    free = len(seen) - np.linalg.matrix_rank(layout)
    if free < 1:
        return Compared(times, None)
    variance = float(np.sum((seen - layout @ solved) ** 2)) / free
    logarithms = variance * np.linalg.pinv(layout.T @ layout)[: many - 1, : many - 1]
    return Compared(times, logarithms * np.outer(factors, factors))

"""What tells contenders apart that were turned round the same brokers: by least squares, with its noise."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

Stretches = Sequence[Mapping[str, float]]
"""Contender -> figure above 0, in the same order in each; in stretch n the contender at place p had the broker
(p + n) modulo their number."""


class Compared(NamedTuple):
    """Contenders beside the first one.

    Attributes:
        times: name -> how many times the figure of the first one.
        covariance: of these, in their order; None where no figure is left to tell noise from.
    """

    times: dict[str, float]
    covariance: FloatArray | None

    def squared(self, first: str, second: str) -> float:
        """Four times the covariance of two of them, or the variance of one: of twice the standard error, the square.

        Raises:
            ValueError: there is no covariance.
        """
        if self.covariance is None:
            raise ValueError("no figure is left to tell noise from")
        names = list(self.times)
        return 4 * float(self.covariance[names.index(first), names.index(second)])

    def noise(self, name: str) -> float:
        """Twice the standard error of one."""
        return math.sqrt(self.squared(name, name))


def compared(stretches: Stretches) -> Compared:
    """Each figure is what its stretch, its broker and its contender stand for, multiplied, and noise.

    Multiplied, for a machine that is slow makes all processor time count for more, in proportion. A two-way layout with
    an effect of treatment (a Latin square, where the rotations are whole), of the logarithms; the covariance is theirs
    times both factors (delta method).
    """
    names = list(stretches[0])
    many = len(names)
    # The first contender and the first broker are what the others are told against.
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

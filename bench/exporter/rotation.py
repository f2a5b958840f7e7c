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

    @property
    def noise(self) -> dict[str, float] | None:
        """Name -> twice the standard error; None where there is none."""
        if self.covariance is None:
            return None
        variances = zip(self.times, self.covariance.diagonal(), strict=True)
        return {name: 2 * math.sqrt(max(0.0, float(variance))) for name, variance in variances}

    def shared(self, first: str, second: str) -> float:
        """Four times the covariance of two of them; 0 where that cannot be told."""
        names = list(self.times)
        return 0.0 if self.covariance is None else 4 * float(self.covariance[names.index(first), names.index(second)])


def compared(stretches: Stretches) -> Compared:
    """Each figure is what its stretch, its broker and its contender stand for, multiplied, and noise.

    Multiplied, for a machine that is slow makes all processor time count for more, in proportion. A two-way layout with
    an effect of treatment (a Latin square, where the rotations are whole), of the logarithms; the covariance is theirs
    times both factors (delta method).
    """
    names = list(stretches[0])
    many = len(names)
    rows, figures = [], []
    for number, stretch in enumerate(stretches):
        for place, name in enumerate(names):
            broker = (place + number) % many
            row = np.zeros(2 * (many - 1) + len(stretches))
            # The first contender and the first broker are what the others are told against.
            for position in (place - 1 if place else None, many - 2 + broker if broker else None):
                if position is not None:
                    row[position] = 1.0
            row[2 * (many - 1) + number] = 1.0
            rows.append(row)
            figures.append(math.log(stretch[name]))
    layout, seen = np.array(rows), np.array(figures)
    solved, *_ = np.linalg.lstsq(layout, seen, rcond=None)
    factors = np.exp(solved[: many - 1])
    times = dict(zip(names[1:], map(float, factors), strict=True))
    free = len(seen) - np.linalg.matrix_rank(layout)
    if free < 1:
        return Compared(times, None)
    variance = float(np.sum((seen - layout @ solved) ** 2)) / free
    logarithms = variance * np.linalg.pinv(layout.T @ layout)[: many - 1, : many - 1]
    return Compared(times, logarithms * np.outer(factors, factors))

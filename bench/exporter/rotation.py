"""What tells contenders apart that were turned round the same brokers: by least squares, with its noise."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

Stretches = Sequence[Mapping[str, float]]
"""Contender -> figure, in the same order in each; in stretch n the contender at place p had the broker
(p + n) modulo their number."""


class Added(NamedTuple):
    """What contenders add beyond the first one.

    Attributes:
        means: name -> figure.
        covariance: of the means, in their order; None where no figure is left to tell noise from.
    """

    means: dict[str, float]
    covariance: FloatArray | None

    @property
    def noise(self) -> dict[str, float] | None:
        """Name -> twice the standard error; None where there is none."""
        if self.covariance is None:
            return None
        variances = zip(self.means, self.covariance.diagonal(), strict=True)
        return {name: 2 * math.sqrt(max(0.0, float(variance))) for name, variance in variances}

    def shared(self, first: str, second: str) -> float:
        """Four times the covariance of two of them; 0 where that cannot be told."""
        names = list(self.means)
        return 0.0 if self.covariance is None else 4 * float(self.covariance[names.index(first), names.index(second)])


def added(stretches: Stretches) -> Added:
    """Each figure is the sum of what its stretch, its broker and its contender stand for, and noise.

    A two-way layout with an effect of treatment (a Latin square, where the rotations are whole).
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
            figures.append(stretch[name])
    layout, seen = np.array(rows), np.array(figures)
    solved, *_ = np.linalg.lstsq(layout, seen, rcond=None)
    free = len(seen) - np.linalg.matrix_rank(layout)
    means = {name: float(solved[place]) for place, name in enumerate(names[1:])}
    if free < 1:
        return Added(means, None)
    variance = float(np.sum((seen - layout @ solved) ** 2)) / free
    return Added(means, variance * np.linalg.pinv(layout.T @ layout)[: many - 1, : many - 1])

"""Shares the broker's time out among the families: who is asked how often, when not all can be asked always.

Pure. A family that costs C seconds a reading and is asked every I seconds takes C / I of a core of the broker; what it
wants is C over its shortest interval. Shares are max-min fair: who wants little gets it whole, and what is left is
shared alike among those who want more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

VITAL_SHARE = 0.2
"""A vital family stretches too, once a reading takes a fifth of its interval: it is never under way all the time."""

TOTALS_PART = 0.5
"""The totals of many queues may take this part of what their family gets; the rest goes to statistics of suspects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one family wants.

    Attributes:
        cost: seconds of the broker's time for one reading; 0 before the first.
        shortest: seconds between the beginnings of two readings when nothing is scarce; above 0.
        vital: asked at its shortest interval, and not part of the budget, as long as it is quick.
    """

    cost: float
    shortest: float
    vital: bool = False

    @property
    def wanted(self) -> float:
        """The share of a core that it takes at its shortest interval."""
        return self.cost / self.shortest


def fair_shares(wanted: Mapping[str, float], budget: float) -> dict[str, float]:
    """Share a budget out, max-min fairly: nobody gets more than it wants, nor less than another that wants as much.

    Args:
        wanted: name -> share of a core; 0 or more.
        budget: share of a core for all of them together; 0 or more.

    Returns:
        name -> share of a core, in the order of `wanted`.
    """
    shares: dict[str, float] = {}
    left = budget
    # From the one that wants least on, each may take an equal part of what is left; what it leaves goes to the next.
    for place, name in enumerate(sorted(wanted, key=lambda name: wanted[name])):
        shares[name] = min(wanted[name], left / (len(wanted) - place))
        left = max(0.0, left - shares[name])
    return {name: shares[name] for name in wanted}


def shares(demands: Mapping[str, Demand], budget: float) -> dict[str, float]:
    """The share of a core that each family may take.

    Args:
        demands: family -> what it costs and wants.
        budget: share of a core for all that is not vital.
    """
    fair = fair_shares({name: demand.wanted for name, demand in demands.items() if not demand.vital}, budget)
    return {name: min(demand.wanted, VITAL_SHARE) if demand.vital else fair[name] for name, demand in demands.items()}


def interval(demand: Demand, share: float) -> float:
    """Seconds between the beginnings of two readings that take no more than a share; the shortest where it fits."""
    if demand.wanted <= share:
        return demand.shortest
    return max(demand.shortest, demand.cost / share) if share > 0 else math.inf


def intervals(demands: Mapping[str, Demand], budget: float) -> dict[str, float]:
    """Seconds between the beginnings of two readings of each family."""
    granted = shares(demands, budget)
    return {name: interval(demand, granted[name]) for name, demand in demands.items()}


def split(totals: Demand, share: float) -> tuple[float, float]:
    """How often the totals of many queues are read, and what is left for the statistics of single ones.

    Args:
        totals: what reading the totals of all queues costs, and its shortest interval.
        share: what the queues may take of a core.

    Returns:
        seconds between two readings of the totals, share of a core for statistics.
    """
    period = interval(totals, share * TOTALS_PART)
    return period, max(0.0, share - totals.cost / period)

"""Shares the broker's time out among the families: who is asked how often, when not all can be asked always.

Pure. A family that costs C seconds a reading and is asked every I seconds takes C / I of a core of the broker; what it
wants is C over its shortest interval. Shares are max-min fair: who wants little gets it whole, and what is left is
shared alike among those who want more. What most verdicts rest on has a smallest part of the budget beside.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

VITAL_SHARE = 0.2
"""A vital family stretches too, once a reading takes a fifth of its interval: it is never under way all the time."""

TOTALS_PART = 0.5
"""The totals of many queues may take this part of what their family gets; the rest goes to statistics of suspects."""

TOTALS_SECONDS = 60.0
"""They are read so often even where that is more, as long as they are quick: which queue has a backlog is what is asked
first, and a hundredth of a core, a large broker's budget by default, has those of 50,000 every quarter of an hour."""

TOTALS_SHARE = 1 / 30
"""But for no more than this of a core, two seconds a minute: those of 50,000 queues took 3.5 s (4.3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one family wants.

    Attributes:
        cost: seconds of the broker's time for one reading; 0 before the first.
        shortest: seconds between the beginnings of two readings when nothing is scarce; above 0.
        vital: asked at its shortest interval, and not part of the budget, as long as it is quick.
        weight: how much it counts for, beside the others, when not all can have what they want; above 0.
        least: the part of the budget that it gets however much the others want; those of all are no more than 1.
    """

    cost: float
    shortest: float
    vital: bool = False
    weight: float = 1.0
    least: float = 0.0

    @property
    def wanted(self) -> float:
        """The share of a core that it takes at its shortest interval."""
        return self.cost / self.shortest


def fair_shares(
    wanted: Mapping[str, float],
    budget: float,
    weights: Mapping[str, float] | None = None,
    least: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Share a budget out, max-min fairly: nobody gets more than it wants, nor less than another that wants as much.

    Args:
        wanted: name -> share of a core; 0 or more.
        budget: share of a core for all of them together; 0 or more.
        weights: name -> how many times as much as one of weight 1 it may get; 1 where nothing is said.
        least: name -> the part of the budget that it gets if it wants it, before anybody shares; 1 in all at most.

    Returns:
        name -> share of a core, in the order of `wanted`.
    """
    floors = {name: min(wanted[name], part * budget) for name, part in (least or {}).items() if name in wanted}
    held: dict[str, float] = {}
    while True:
        others = {name: share for name, share in wanted.items() if name not in held}
        found = _weighed(others, max(0.0, budget - math.fsum(held.values())), weights or {})
        short = {name: floors[name] for name, share in found.items() if share < floors.get(name, 0.0)}
        if not short:
            return {name: held[name] if name in held else found[name] for name in wanted}
        held |= short


def _weighed(wanted: Mapping[str, float], budget: float, weights: Mapping[str, float]) -> dict[str, float]:
    """The same without smallest shares."""
    weight = {name: weights.get(name, 1.0) for name in wanted}
    shares: dict[str, float] = {}
    left, order = budget, sorted(wanted, key=lambda name: wanted[name] / weight[name])
    # From the one that wants least for its weight on, each may take its part of what is left; what it leaves goes on.
    for place, name in enumerate(order):
        part = left * weight[name] / math.fsum(weight[other] for other in order[place:])
        shares[name] = min(wanted[name], part)
        left = max(0.0, left - shares[name])
    return shares


def shares(demands: Mapping[str, Demand], budget: float) -> dict[str, float]:
    """The share of a core that each family may take.

    Args:
        demands: family -> what it costs and wants.
        budget: share of a core for all that is not vital.
    """
    plain = {name: demand for name, demand in demands.items() if not demand.vital}
    wanted = {name: demand.wanted for name, demand in plain.items()}
    weights = {name: demand.weight for name, demand in plain.items()}
    fair = fair_shares(wanted, budget, weights, {name: demand.least for name, demand in plain.items()})
    return {name: min(demand.wanted, VITAL_SHARE) if demand.vital else fair[name] for name, demand in demands.items()}


def interval(demand: Demand, share: float) -> float:
    """Seconds between the beginnings of two readings that take no more than a share; the shortest where it fits."""
    if demand.wanted <= share:
        return demand.shortest
    return max(demand.shortest, demand.cost / share) if share > 0 else math.inf


def split(totals: Demand, share: float, most: float = TOTALS_SHARE) -> tuple[float, float]:
    """How often the totals of many queues are read, and what the statistics of single ones may take.

    Beyond the share where totals once in `TOTALS_SECONDS` are dearer than it: statistics keep their part all the same.

    Args:
        totals: what reading the totals of all queues costs, and its shortest interval.
        share: what the queues may take of a core.
        most: of a core, that the totals may take beyond it.

    Returns:
        seconds between two readings of the totals, share of a core for statistics.
    """
    longest = max(totals.shortest, TOTALS_SECONDS, totals.cost / most)
    period = min(longest, interval(totals, share * TOTALS_PART))
    return period, max(share * (1 - TOTALS_PART), share - totals.cost / period)

"""Divides the polling budget among the families, which decides how often each is polled.

Pure. A family that costs C seconds per reading and is read every I seconds takes C / I of one core of the broker. Its
demand is C divided by its shortest interval. Shares are weighted max-min fair: small demands are met in full, and the
rest is divided among the larger ones. Families that most rules depend on have a guaranteed minimum share.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

VITAL_MAX_SHARE = 0.2
"""Largest share of one core of a vital family: beyond it its interval grows, so that polling never runs constantly."""

TOTALS_PART = 0.5
"""Part of the queues' share that totals may take; the rest is for statistics of suspicious queues."""

TOTALS_INTERVAL_SECONDS = 60.0
"""Totals are read at least this often, even beyond the share, because a backlog is what users look for first.

Within 1 % of a core, the default budget, the totals of 50,000 queues would be read only every 15 minutes.
"""

TOTALS_MAX_SHARE = 1 / 30
"""Totals never take more than this share of a core, 2 s per minute: those of 50,000 queues took 3.5 s (4.3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Demand of one family.

    Attributes:
        cost: seconds of broker time for one reading; 0 before the first reading.
        min_interval: seconds between the starts of two readings if the budget does not limit them; above 0.
        vital: polled at its shortest interval outside the budget, as long as it is fast.
        weight: relative weight if not all demands can be met; above 0.
        min_share: guaranteed part of the budget (0 to 1); at most 1 over all families.
    """

    cost: float
    min_interval: float
    vital: bool = False
    weight: float = 1.0
    min_share: float = 0.0

    @property
    def share(self) -> float:
        """Share of one core that the family takes at its shortest interval."""
        return self.cost / self.min_interval


def fair_shares(
    demands: Mapping[str, float],
    budget: float,
    weights: Mapping[str, float] | None = None,
    min_shares: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return weighted max-min fair shares: nobody gets more than its demand, or less than another with equal demand.

    Args:
        demands: name -> demanded share of one core; 0 or more.
        budget: share of one core for all of them together; 0 or more.
        weights: name -> relative weight; default 1.
        min_shares: name -> part of the budget that is guaranteed, up to the demand; at most 1 in total.

    Returns:
        name -> share of one core, in the order of `demands`.
    """
    floors = {name: min(demands[name], part * budget) for name, part in (min_shares or {}).items() if name in demands}
    fixed: dict[str, float] = {}
    while True:
        others = {name: demand for name, demand in demands.items() if name not in fixed}
        found = _weighted_shares(others, max(0.0, budget - math.fsum(fixed.values())), weights or {})
        below_floor = {name: floors[name] for name, share in found.items() if share < floors.get(name, 0.0)}
        if not below_floor:
            return {name: fixed[name] if name in fixed else found[name] for name in demands}
        fixed |= below_floor


def _weighted_shares(demands: Mapping[str, float], budget: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Weighted max-min fair shares without guaranteed minimums."""
    weight = {name: weights.get(name, 1.0) for name in demands}
    shares: dict[str, float] = {}
    remaining, order = budget, sorted(demands, key=lambda name: demands[name] / weight[name])
    # In order of demand per weight, each gets at most its part of the remainder. What it leaves goes to the later ones.
    for place, name in enumerate(order):
        part = remaining * weight[name] / math.fsum(weight[other] for other in order[place:])
        shares[name] = min(demands[name], part)
        remaining = max(0.0, remaining - shares[name])
    return shares


def family_shares(demands: Mapping[str, Demand], budget: float) -> dict[str, float]:
    """Return the share of one core that each family may take.

    Args:
        demands: demand by family.
        budget: share of one core for all families that are not vital.
    """
    limited = {name: demand for name, demand in demands.items() if not demand.vital}
    fair = fair_shares(
        {name: demand.share for name, demand in limited.items()},
        budget,
        weights={name: demand.weight for name, demand in limited.items()},
        min_shares={name: demand.min_share for name, demand in limited.items()},
    )
    return {
        name: min(demand.share, VITAL_MAX_SHARE) if demand.vital else fair[name] for name, demand in demands.items()
    }


def interval_for(demand: Demand, share: float) -> float:
    """Return the seconds between the starts of two readings that keep the family within `share` of one core."""
    if demand.share <= share:
        return demand.min_interval
    return max(demand.min_interval, demand.cost / share) if share > 0 else math.inf


def split_queue_share(totals: Demand, share: float, totals_max_share: float = TOTALS_MAX_SHARE) -> tuple[float, float]:
    """Divide the share of the queues between totals and statistics of single queues.

    Totals may exceed the share if it is too small to read them every `TOTALS_INTERVAL_SECONDS`; statistics keep their
    part in any case.

    Args:
        totals: cost of the totals of all queues and their shortest interval.
        share: share of one core for the queues.
        totals_max_share: share of one core that the totals may take beyond it.

    Returns:
        seconds between two readings of the totals, share of one core for statistics.
    """
    longest = max(totals.min_interval, TOTALS_INTERVAL_SECONDS, totals.cost / totals_max_share)
    interval = min(longest, interval_for(totals, share * TOTALS_PART))
    return interval, max(share * (1 - TOTALS_PART), share - totals.cost / interval)

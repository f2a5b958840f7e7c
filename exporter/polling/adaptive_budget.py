"""The default budget of polling: small while the broker is idle, full while it is active.

The totals in the broker's overview show whether it is active. They are read in every round regardless of the budget,
cost the same for any number of queues, and reflect every significant backlog, redelivery or loss of clients.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ackscope.clock import Instant
from ackscope.snapshot import Node, Overview, Part
from exporter.broker.cost_model import SlidingMin
from exporter.broker.families import POLLED
from exporter.polling.budget import TOTALS_MAX_SHARE, Demand

MAX_SHARE = 0.01
"""Share of one core while the broker is active; with 8,000 queues or more also while it is idle."""

_SHARE_PER_QUEUE = 1.25e-6
"""Share of one core per queue while the broker is idle."""

MIN_IDLE_SHARE = 1000 * _SHARE_PER_QUEUE
"""Share of one core while idle, with up to 1,000 queues. Reading 1,000 in full every 15 s took 0.005."""

CHEAP_SECONDS = 0.005
"""Families that cost less per reading are not slowed down by the idle budget, up to `MAX_SHARE` in total."""

IDLE_TOTALS_SHARE = 1 / 60
"""Share of one core for queue totals while idle: those of 10,000 took 1.7 s (3.10.8), as long as all statistics."""

IDLE_FULL_INTERVAL_SECONDS = 150.0
"""While idle, seconds between full readings of a moderate number of queues, instead of totals once a minute.

It is half of the five minutes that rates usually span, so that they cover two readings.

Totals wake the process of every queue, even after the answer. Read once a minute, the totals of 1,000 idle queues took
0.18 s of the broker's CPU time and all statistics 0.26 s (4.3.6); read at short intervals, 0.02 s and 0.08 s.
"""

IDLE_CHECK_MAX_AGE_SECONDS = 50.0
"""While idle, seconds for which a health check that passed is not polled again. The alarms check always is.

The checks are a dozen requests, half of all in a round for a small broker. At an interval of 15 s this means once a
minute.
"""

_BASELINE_SECONDS = 150.0
"""A total is compared with its best value of the last one to two windows of this length."""


class _Threshold(NamedTuple):
    """Threshold of one total, which shows activity if it is worse than `factor` times its baseline by over `margin`.

    Attributes:
        sign: 1 if higher is worse, -1 if lower is worse.
        margin: messages, redelivered messages per second, or clients.
    """

    sign: int
    factor: float
    margin: float


# The margin allows for a few clients that connect or disconnect, including our own probes.
_THRESHOLDS = {
    "messages_ready": _Threshold(1, 1.25, 100.0),
    "messages_unacked": _Threshold(1, 1.25, 100.0),
    "redelivered": _Threshold(1, 1.25, 5.0),
    "consumers": _Threshold(-1, 0.8, 2.0),
    "connections": _Threshold(-1, 0.8, 2.0),
}


class ActivityDetector:
    """Detects whether one broker is active. Not thread-safe.

    Attributes:
        active: whether the broker was active at the latest update.
    """

    def __init__(self) -> None:
        self._baselines = {name: SlidingMin(_BASELINE_SECONDS) for name in _THRESHOLDS}
        self._redelivered: tuple[int, Instant] | None = None
        self._overview_at: Instant | None = None
        self._totals_exceeded = self.active = False

    def update(self, overview: Part[Overview], nodes: Part[tuple[Node, ...]]) -> None:
        """Set `active`: true if a total exceeds its threshold, a node is down or has an alarm, or a reading failed."""
        if overview.value is not None and overview.at is not None and overview.at != self._overview_at:
            self._overview_at = overview.at
            self._totals_exceeded = self._compare(self._totals(overview.value, overview.at), overview.at.mono)
        unreadable = overview.error is not None or nodes.error is not None
        unhealthy = any(node.running is False or node.mem_alarm or node.disk_free_alarm for node in nodes.value or ())
        self.active = self._totals_exceeded or unreadable or unhealthy

    def _compare(self, totals: Mapping[str, float], now: float) -> bool:
        exceeded = False
        for name, value in totals.items():
            sign, factor, margin = _THRESHOLDS[name]
            self._baselines[name].record(sign * value, now)
            exceeded |= sign * value > factor * self._baselines[name].value + margin
        return exceeded

    def _totals(self, overview: Overview, at: Instant) -> dict[str, float]:
        """Return the totals that the broker reports, by name."""
        totals = {
            "messages_ready": overview.messages_ready,
            "messages_unacked": overview.messages_unacked,
            "redelivered": self._redelivery_rate(overview.stats.redeliver, at),
            "consumers": overview.consumers,
            "connections": overview.connections,
        }
        return {name: value for name, value in totals.items() if value is not None}

    def _redelivery_rate(self, count: int | None, at: Instant) -> float | None:
        """Return redelivered messages per second since the previous reading; None without one or after a reset."""
        previous, self._redelivered = self._redelivered, None if count is None else (count, at)
        if count is None or previous is None or count < previous[0]:
            return None
        return (count - previous[0]) / max(at.since(previous[1]), 1e-3)


def default_budget(queues: int, demands: Mapping[str, Demand], *, active: bool) -> float:
    """Return the default share of one core for all families that are not vital.

    Args:
        queues: number of queues of the broker.
        demands: demand by family.
        active: whether the broker is active.
    """
    cheap = (it.share for it in demands.values() if not it.vital and it.cost < CHEAP_SECONDS)
    return MAX_SHARE if active else min(MAX_SHARE, max(MIN_IDLE_SHARE, queues * _SHARE_PER_QUEUE) + math.fsum(cheap))


class AdaptiveBudget:
    """The current budget of one broker, and the reductions of polling while the broker is idle.

    Args:
        fixed: configured share of one core; None for the default. Only then polling is reduced while idle.

    Attributes:
        share: share of one core for all families that are not vital.
        idle: whether the broker is idle.
    """

    def __init__(self, fixed: float | None) -> None:
        self._fixed, self._activity = fixed, ActivityDetector()
        self.share = MIN_IDLE_SHARE if fixed is None else fixed
        self.idle = False

    @property
    def max_share(self) -> float:
        """Share of one core that polling may take while the broker is active."""
        return MAX_SHARE if self._fixed is None else self._fixed

    @property
    def totals_max_share(self) -> float:
        """Share of one core that queue totals, or full readings instead of them, may take beyond the budget."""
        return IDLE_TOTALS_SHARE if self.idle else TOTALS_MAX_SHARE

    @property
    def full_interval(self) -> float:
        """Longest acceptable seconds between full readings of a moderate number of queues; 0 to prefer totals."""
        return IDLE_FULL_INTERVAL_SECONDS if self.idle else 0.0

    @property
    def check_max_age(self) -> float:
        """Seconds for which a health check that passed is not polled again."""
        return IDLE_CHECK_MAX_AGE_SECONDS if self.idle else 0.0

    def plan(
        self,
        demands: Mapping[str, Demand],
        overview: Part[Overview],
        nodes: Part[tuple[Node, ...]],
        queues_interval: float = 0.0,
    ) -> dict[str, Demand]:
        """Set `share` and `idle` for the next round; see `ActivityDetector.update` and `default_budget`.

        Args:
            demands: demand by family.
            overview: latest reading.
            nodes: latest reading.
            queues_interval: current seconds between two readings of the queues.

        Returns:
            the demands, some of them reduced if the broker is idle.
        """
        planned = dict(demands)
        if self._fixed is None:
            self._activity.update(overview, nodes)
            self.idle = not self._activity.active
            if self.idle:
                planned = {name: _idle_demand(name, demand, queues_interval) for name, demand in demands.items()}
            queues = (overview.value and overview.value.queues) or 0
            self.share = default_budget(queues, planned, active=self._activity.active)
        return planned


def _idle_demand(name: str, demand: Demand, queues_interval: float) -> Demand:
    """Return the demand on an idle broker: longer intervals for families that rarely change.

    A cheap family is still read at least as often as the queues.
    """
    interval = POLLED[name].idle_interval
    if demand.cost < CHEAP_SECONDS:
        interval = min(interval, queues_interval)
    return replace(demand, min_interval=max(demand.min_interval, interval))

"""What polling may take of a broker where nobody says it: little while it is calm, the whole while something moves.

The broker's own sums tell whether it does. They are read in every round whatever the budget is, cost the same for any
number of queues, and a backlog, a redelivery or a loss of clients that matters to anybody shows in them.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from ackscope.clock import Instant
from ackscope.snapshot import Node, Overview, Part
from exporter.broker.families import FAMILIES
from exporter.broker.least import Least
from exporter.polling.budget import TOTALS_SHARE, Demand

MOST = 0.01
"""Of a core, while something moves, and always for a broker of 8,000 queues or more."""

_A_QUEUE = 1.25e-6
"""Of a core, while nothing moves, for each queue."""

CALM = 1000 * _A_QUEUE
"""Of a core, as of a broker of 1,000 queues, for all smaller ones: all of these in full every 15 s took 0.005."""

CHEAP_SECONDS = 0.005
"""A reading that takes less is not worth saving: it is read as often as without a budget, up to `MOST` in all."""

CALM_TOTALS_SHARE = 1 / 60
"""Of a core, for totals of all queues while nothing moves: those of 10,000 took 1.7 s (3.10.8), as all statistics."""

CALM_FULL_SECONDS = 150.0
"""While nothing moves, queues that are not many are read in full so often, rather than their totals once a minute.

Half of the five minutes that rates are mostly taken over, so that they hold two readings each.

Totals wake each queue's process, after the answer too: those of 1,000 idle ones, once a minute, took 0.18 s of the
broker's processors, all statistics 0.26 (4.3.6); asked at short intervals, 0.02 and 0.08.
"""

CALM_CHECKS_SECONDS = 50.0
"""While nothing moves, a health check that passed is not asked anew for so long; that for alarms is, each time.

A dozen requests: of all that are asked of a small broker in a round, half. Once a minute at rounds of 15 s.
"""

_SPAN_SECONDS = 150.0
"""A sum is held against what it was within the last one to two of these."""

_BAD = {
    "messages_ready": (1, 1.25, 100.0),
    "messages_unacked": (1, 1.25, 100.0),
    "redelivered": (1, 1.25, 5.0),
    "consumers": (-1, 0.8, 2.0),
    "connections": (-1, 0.8, 2.0),
}
"""Sum -> which way is bad; how many times what it was it may be, and what it may differ by beside: messages, of
redelivered ones a second, clients (some come and go on any broker, our own probes among them)."""


class Stir:
    """Whether something moves at one broker; not for several threads.

    Attributes:
        moving: whether it does, as of the latest note.
    """

    def __init__(self) -> None:
        self._best = {name: Least(_SPAN_SECONDS) for name in _BAD}
        self._redelivered: tuple[int, Instant] | None = None
        self._at: Instant | None = None
        self._stirred = self.moving = False

    def note(self, overview: Part[Overview], nodes: Part[tuple[Node, ...]]) -> None:
        """Take in what the broker says of itself: what is held against the same of some minutes before, and alarms.

        One that does not say it is not calm.
        """
        if overview.value is not None and overview.at is not None and overview.at != self._at:
            self._at = overview.at
            self._stirred = self._compare(self._sums(overview.value, overview.at), overview.at.mono)
        silent = overview.error is not None or nodes.error is not None
        ill = any(node.running is False or node.mem_alarm or node.disk_free_alarm for node in nodes.value or ())
        self.moving = self._stirred or silent or ill

    def _compare(self, sums: Mapping[str, float], now: float) -> bool:
        """Whether one of them is worse than its best of some minutes allows."""
        moved = False
        for name, value in sums.items():
            way, times, beside = _BAD[name]
            self._best[name].note(way * value, now)
            moved |= way * value > times * self._best[name].value + beside
        return moved

    def _sums(self, overview: Overview, at: Instant) -> dict[str, float]:
        """Those that are told."""
        told = {
            "messages_ready": overview.messages_ready,
            "messages_unacked": overview.messages_unacked,
            "redelivered": self._redelivery(overview.stats.redeliver, at),
            "consumers": overview.consumers,
            "connections": overview.connections,
        }
        return {name: value for name, value in told.items() if value is not None}

    def _redelivery(self, count: int | None, at: Instant) -> float | None:
        """Messages a second since the reading before; None without one, and where the broker began to count anew."""
        before, self._redelivered = self._redelivered, None if count is None else (count, at)
        if count is None or before is None or count < before[0]:
            return None
        return (count - before[0]) / max(at.since(before[1]), 1e-3)


def by_size(queues: int, demands: Mapping[str, Demand], *, moving: bool) -> float:
    """The share of a core for all that is not vital, where none is set.

    Args:
        queues: how many the broker has.
        demands: family -> what it costs and wants.
        moving: whether something moves there.
    """
    cheap = (it.wanted for it in demands.values() if not it.vital and it.cost < CHEAP_SECONDS)
    return MOST if moving else min(MOST, max(CALM, queues * _A_QUEUE) + math.fsum(cheap))


class Allowed:
    """The budget of one broker as it is now, and all that a calm one is spared.

    Args:
        fixed: share of a core as set; None where it is not: only then a calm broker is spared anything.

    Attributes:
        share: of a core, for all that is not vital.
        calm: whether nothing moves there.
    """

    def __init__(self, fixed: float | None) -> None:
        self._fixed, self._stir = fixed, Stir()
        self.share = CALM if fixed is None else fixed
        self.calm = False

    @property
    def totals(self) -> float:
        """Share of a core that totals of all queues, or all in full instead, may take beyond the budget."""
        return CALM_TOTALS_SHARE if self.calm else TOTALS_SHARE

    @property
    def full_every(self) -> float:
        """Seconds between two readings of all statistics that are enough where queues are not many; 0: not enough."""
        return CALM_FULL_SECONDS if self.calm else 0.0

    @property
    def checks_good_for(self) -> float:
        """Seconds for which a health check that passed is not asked anew."""
        return CALM_CHECKS_SECONDS if self.calm else 0.0

    def plan(
        self,
        demands: Mapping[str, Demand],
        overview: Part[Overview],
        nodes: Part[tuple[Node, ...]],
        queues_every: float = 0.0,
    ) -> dict[str, Demand]:
        """Set `share` and `calm` for the round that begins; see `Stir.note` and `by_size`.

        Args:
            demands: family -> what it costs and wants.
            overview: as of the latest reading.
            nodes: as of the latest reading.
            queues_every: seconds between two readings of the queues as it is now.

        Returns:
            what the families want now: some of them less often on a calm broker.
        """
        wanted = dict(demands)
        if self._fixed is None:
            self._stir.note(overview, nodes)
            self.calm = not self._stir.moving
            if self.calm:
                wanted = {name: _calmly(name, demand, queues_every) for name, demand in demands.items()}
            queues = (overview.value and overview.value.queues) or 0
            self.share = by_size(queues, wanted, moving=self._stir.moving)
        return wanted


def _calmly(name: str, demand: Demand, queues_every: float) -> Demand:
    """What changes only when somebody changes it is wanted less often; what is cheap, as often as the queues."""
    calm = FAMILIES[name].calm
    if demand.cost < CHEAP_SECONDS:
        calm = min(calm, queues_every)
    return replace(demand, shortest=max(demand.shortest, calm))

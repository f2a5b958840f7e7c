"""Reads the queues of one broker within a budget: all in full, or totals of all and statistics of a rotating subset.

FULL: every queue with all its statistics, page by page, in every reading.
TOTALS: totals of all queues in one answer. Statistics are read as fast as the budget allows: suspicious queues one by
one, the rest page by page. This mode is chosen if a full reading exceeds the budget and there are many queues.
"""

import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.snapshot import Queue
from exporter.broker.client import ManagementClient
from exporter.broker.cost_model import CostBaseline
from exporter.broker.endpoints.queues import QueueKey, columns_for, decode_queues
from exporter.broker.families import FamilyReading
from exporter.broker.fetch import PAGE_SIZE, QUEUES_PATH, fetch_page, fetch_pages, fetch_totals
from exporter.broker.fields import Gaps, Version
from exporter.broker.queue_details import QueueDetailPoller
from exporter.broker.queue_store import DetailCoverage, QueueStore

MANY_QUEUES = 2000
"""A broker with at least this many queues starts in mode TOTALS, and `QueueBudget.full_interval` does not apply."""

_FULL_COST_MARGIN = 1.25
"""The mode returns to FULL only if a full reading fits with this margin, so that it does not flap."""

_FULL_COST_IN_TOTALS = 4
"""Assumed cost of a full reading as a multiple of the totals, until it is measured (on 4.0: 5 to 7)."""

_MAX_DETAIL_SECONDS = 15.0
"""Longest time in seconds for statistics after the totals, which are published only afterwards."""

_SAMPLE_SIZE = 20
"""Number of items that are inspected to detect a broker that ignores the parameters for totals."""

TOTALS_UNSUPPORTED = (
    "the broker does not support queue totals (disable_stats and enable_queue_totals of /api/queues); "
    "all queues are read in full, as often as the budget allows"
)

QueuesReading = FamilyReading[tuple[Queue, ...]]


class QueueMode(StrEnum):
    """How the queues are read; see the module."""

    FULL = "full"
    TOTALS = "totals"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBudget:
    """Limits on the cost of reading the queues.

    Attributes:
        share: share of one core of the broker for all readings of queues.
        min_interval: seconds between two readings if the budget does not limit them.
        totals_interval: seconds between two readings of the totals.
        details_share: part of `share` for statistics of single queues and pages.
        full_interval: longest acceptable seconds between two full readings with fewer than `MANY_QUEUES` queues; 0 if
            totals are preferred because they are fresher.
        full_max_share: share of one core that those full readings may take, even if it exceeds `share`.
    """

    share: float
    min_interval: float
    totals_interval: float
    details_share: float
    full_interval: float = 0.0
    full_max_share: float = 0.0

    def allows_full(self, cost: float) -> bool:
        """Whether a full reading that costs this many seconds fits every `full_interval`."""
        return cost <= self.full_max_share * self.full_interval


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHints:
    """Information about the queues from other families.

    Attributes:
        queue_count: number of queues in the overview; None if unknown.
        statistics: False if the broker collects none. The full list then lacks even the totals.
        redelivering: queues whose channels redelivered messages.
    """

    queue_count: int | None = None
    statistics: bool | None = None
    redelivering: Collection[QueueKey] = ()


class QueueReader:
    """Reads the queues of one broker, one step at a time.

    Attributes:
        mode: None before the first step.
        totals_unsupported: whether the broker gives no totals. It is then read in full, however large it is.
        details: reads the statistics in mode TOTALS.
    """

    def __init__(self, client: ManagementClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._store = QueueStore()
        self.details = QueueDetailPoller(client, clock, self._store)
        self.mode: QueueMode | None = None
        self.totals_unsupported = False
        self._version: Version | None = None
        self._statistics: bool | None = None
        self._last_full: QueuesReading | None = None
        self._full_costs: tuple[float, ...] = ()
        self._full_baseline = CostBaseline()
        self._totals_costs: tuple[float, ...] = ()
        self._totals_began = float("-inf")

    @property
    def full_cost(self) -> float:
        """Seconds of broker time for a full reading, measured or estimated; 0 before the first reading."""
        if self.mode is not QueueMode.TOTALS:
            # The minimum, because other load only makes a reading longer, and must not slow down polling.
            return min(*self._full_costs, self._full_baseline.max_cost()) if self._full_costs else 0.0
        return (self.details.sweep_cost or _FULL_COST_IN_TOTALS * self.totals_cost) * _FULL_COST_MARGIN

    @property
    def totals_cost(self) -> float:
        """Seconds of broker time for the totals of all queues; 0 before their first reading."""
        # The median and not the minimum: an overrun is deducted from the statistics, which must not starve.
        return statistics.median_low(self._totals_costs) if self._totals_costs else 0.0

    def coverage(self) -> DetailCoverage | None:
        """Coverage of the statistics; None if all are read every time, or the broker collects none."""
        return self._store.coverage() if self.mode is QueueMode.TOTALS and self._statistics is not False else None

    def step(self, budget: QueueBudget, hints: QueueHints, version: Version | None) -> QueuesReading | None:
        """Read the queues as far as they are due.

        Returns:
            a new reading of all queues; None if only some statistics were due, which the next reading contains.

        Raises:
            BrokerError: the list of queues could not be read. Failed statistics are reported by `details.error`.
        """
        began = self._clock.now()
        self._statistics = hints.statistics
        if version != self._version:
            self._version, self.totals_unsupported = version, False
        if self.mode is None and hints.queue_count is None:
            # The overview hangs or is not accessible, but the first page also tells the number of queues.
            page_count = fetch_page(self._client, QUEUES_PATH, 1).page_count
            hints = replace(hints, queue_count=page_count * PAGE_SIZE)
        self._choose_mode(budget, hints)
        if self.mode is QueueMode.FULL:
            return self._read_full(version, began)
        self.details.accrue(budget.details_share, budget.totals_interval, began)
        planned, seconds_before = self.totals_cost, self._client.seconds
        # Totals are due up to half a step early, or they would be a whole step late.
        due = began.mono + budget.min_interval / 2 >= self._totals_began + budget.totals_interval
        totals = None
        if due:
            totals = self._read_totals(version, began, budget.totals_interval, budget.min_interval)
            if totals is None:
                self.totals_unsupported, self.mode = True, QueueMode.FULL
                return self._read_full(version, began)
            if planned:
                self.details.charge_overrun(self._client.seconds - seconds_before - planned, planned)
        now = self._clock.now()
        # At least as long as the totals took: on a busy machine, totals of 100,000 queues may be due again immediately.
        deadline = now.mono + max(budget.min_interval / 2, min(now.since(began), _MAX_DETAIL_SECONDS))
        if due and hints.statistics is not False:
            self.details.read_suspects(hints.redelivering, version, deadline)
        self.details.sweep(version, deadline)
        return None if totals is None else self._join(totals)

    def read_once(self, version: Version | None, suspects_seconds: float, *, statistics: bool) -> QueuesReading | None:
        """Read a large broker once: totals of all queues, and statistics of the most suspicious ones.

        Args:
            version: version of the broker.
            suspects_seconds: time for reading single queues.
            statistics: whether the broker collects statistics.

        Returns:
            the reading; None if the broker does not support totals.

        Raises:
            BrokerError: the totals could not be read.
        """
        totals = self._read_totals(version, self._clock.now())
        if totals is None:
            return None
        if statistics:
            self.details.read_suspects_for(suspects_seconds, version)
        return self._join(totals)

    def next_mode(self, budget: QueueBudget, hints: QueueHints) -> QueueMode:
        """Return the mode of the next step, given the cost of previous readings."""
        match self.mode:
            case None:
                many = (hints.queue_count or 0) >= MANY_QUEUES
                return QueueMode.TOTALS if many or hints.statistics is False else QueueMode.FULL
            case QueueMode.TOTALS:
                fits = self._full_fits(budget, hints, self._store.count)
                return QueueMode.FULL if fits and self.details.sweeps else QueueMode.TOTALS
            case QueueMode.FULL:
                # A local reference, because a step may be running in its own thread.
                last_full = self._last_full
                count = 0 if last_full is None else len(last_full.value)
                # A single page is as cheap as the totals.
                useful = count > PAGE_SIZE or hints.statistics is False
                switch = useful and not self.totals_unsupported and not self._full_fits(budget, hints, count)
                return QueueMode.TOTALS if switch else QueueMode.FULL

    def _full_fits(self, budget: QueueBudget, hints: QueueHints, count: int) -> bool:
        """Whether full readings of `count` queues fit the budget."""
        if hints.statistics is False:
            return False
        always = self.full_cost <= budget.share * budget.min_interval * (1 + 1e-9)
        return always or (count < MANY_QUEUES and budget.allows_full(self.full_cost))

    def _choose_mode(self, budget: QueueBudget, hints: QueueHints) -> None:
        previous, self.mode = self.mode, self.next_mode(budget, hints)
        if previous is QueueMode.FULL and self.mode is QueueMode.TOTALS:
            self._totals_began = float("-inf")
            if self._last_full is not None:
                self._store.seed(self._last_full.value, self._last_full.at)
            self.details.restart(self._full_costs)
        if self.mode is QueueMode.TOTALS:
            # The store holds these queues now, so release the list.
            self._last_full = None

    def _read_full(self, version: Version | None, began: Instant) -> QueuesReading:
        client = self._client
        seconds, requests, received = client.seconds, client.requests, client.received
        payload = fetch_pages(client, QUEUES_PATH, columns_for(version))
        cost = client.seconds - seconds
        self._full_costs = (*self._full_costs, cost)[-3:]
        self._full_baseline.record(cost, client.requests - requests, client.received - received, began.mono)
        value, gaps = decode_queues(payload, version)
        done = self._clock.now()
        self._last_full = FamilyReading(value=value, gaps=dict(gaps), at=done, seconds=done.since(began))
        return self._last_full

    def _join(self, totals: FamilyReading[None]) -> QueuesReading:
        """Return all queues with their latest statistics, dated by their totals."""
        gaps = dict(self.details.gaps + Gaps(totals.gaps))
        return FamilyReading(value=self._store.queues, gaps=gaps, at=totals.at, seconds=totals.seconds)

    def _read_totals(
        self, version: Version | None, began: Instant, period: float = 0.0, min_interval: float = 0.0
    ) -> FamilyReading[None] | None:
        """Put the totals into the store; None if the broker does not support them."""
        seconds_before = self._client.seconds
        payload = fetch_totals(self._client)
        self._totals_costs = (*self._totals_costs, self._client.seconds - seconds_before)[-3:]
        try:
            gaps = self._store.put_totals(require_totals(payload), version)
        except TotalsUnsupported:
            return None
        due = self._totals_began + period
        # If this reading is early or late, the next one is due as if it had been on time.
        self._totals_began = due if due > began.mono - min_interval else began.mono
        done = self._clock.now()
        return FamilyReading(value=None, gaps=gaps, at=done, seconds=done.since(began))


class TotalsUnsupported(Exception):
    """The answer to a request for queue totals contains something else."""


def require_totals(payload: Iterable[Any]) -> Iterator[Any]:
    """Yield the same items, and check that they are queue totals.

    Raises:
        TotalsUnsupported: the first items contain full statistics (the broker ignored the parameters), or at the end
            no item contained totals.
    """
    expected = found = False
    for number, item in enumerate(payload):
        if isinstance(item, dict):
            if number < _SAMPLE_SIZE and ("message_stats" in item or "memory" in item):
                raise TotalsUnsupported
            # Streams have no totals in any version from 3.10 to 4.3.
            if not found and item.get("type") != "stream":
                expected, found = True, "messages" in item
        yield item
    if expected and not found:
        raise TotalsUnsupported

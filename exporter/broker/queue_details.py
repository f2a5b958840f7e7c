"""Reads statistics of single queues of a large broker within a budget: suspicious queues one by one, others by page.

Unused budget accumulates over time, half for suspicious queues and half for pages. One request may overdraw it, and
later ones wait until the debt is paid back. So polling does not exceed its share even if a request is expensive.
"""

import statistics
from collections.abc import Collection, Iterable

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.endpoints.queues import QueueKey, columns_for, decode_queue, decode_queues
from exporter.broker.fetch import QUEUES_PATH, fetch_page, fetch_queue
from exporter.broker.fields import Gaps, Version
from exporter.broker.queue_priority import suspicious_queues
from exporter.broker.queue_store import QueueStore

MAX_SUSPECTS = 50
"""Maximum number of single queues that are read after one reading of the totals."""

_INITIAL_SECONDS = 0.1
"""Seconds of broker time for suspicious queues after the first totals, when no budget has accumulated yet."""

_ACCRUAL_SECONDS = 30.0
"""Minimum seconds over which budget accumulates. It is capped because more would only lead to bursts."""

_MAX_PAUSE_SECONDS = 60.0

_NO_PATH_NAMES = (".", "..")
"""Queue names that are relative path segments. Such queues cannot be read singly, only with their page."""


class QueueDetailPoller:
    """Reads statistics of queues into the store. Not thread-safe.

    Attributes:
        sweeps: number of completed passes over all pages.
        error: why the latest request failed; None if it succeeded.
        gaps: gaps of the latest pages and single queues.
    """

    def __init__(self, client: ManagementClient, clock: Clock, store: QueueStore) -> None:
        self._client, self._clock, self._store = client, clock, store
        self.sweeps = 0
        self.error: str | None = None
        self._failures, self._paused_until = 0, float("-inf")
        # Budgets in seconds of broker time.
        self._suspect_budget, self._page_budget, self._accrued_at = _INITIAL_SECONDS, 0.0, clock.now().mono
        self._min_sweep_seconds, self._suspects_read = 0.0, 0
        self._page, self._sweep_began = 1, float("-inf")
        self._page_costs: list[float] = []
        self._sweep_costs: tuple[float, ...] = ()
        self._page_count = 0
        self._gaps, self._last_sweep_gaps = Gaps(), Gaps()

    @property
    def sweep_cost(self) -> float:
        """Seconds of broker time for one pass over all pages; 0 before the first page."""
        if self._sweep_costs:
            return statistics.median_low(self._sweep_costs)
        costs = tuple(self._page_costs)
        return statistics.fmean(costs) * self._page_count if costs else 0.0

    @property
    def gaps(self) -> Gaps:
        """Field name -> queues with an unusable value in it, in the latest sweep."""
        return self._last_sweep_gaps | self._gaps

    def restart(self, costs: Iterable[float]) -> None:
        """Start over; `costs` are the seconds that the latest readings of all pages took."""
        self._sweep_costs = tuple(costs)
        self._accrued_at = self._clock.now().mono
        self.sweeps, self._page, self._page_costs = 0, 1, []

    def accrue(self, share: float, period: float, now: Instant) -> None:
        """Add the budget that accumulated since the last call.

        Args:
            share: share of one core of the broker.
            period: seconds between two readings of the totals.
            now: current time.
        """
        cap = share * max(period, _ACCRUAL_SECONDS)
        added = share / 2 * max(0.0, now.mono - self._accrued_at)
        self._suspect_budget = min(cap, self._suspect_budget + added)
        self._page_budget = min(cap, self._page_budget + added)
        self._accrued_at, self._min_sweep_seconds = now.mono, period

    def charge_overrun(self, seconds: float, planned: float) -> None:
        """Deduct what the totals cost beyond plan, but at most twice the plan, in case it was an outlier."""
        self._page_budget -= max(0.0, min(seconds, 2 * planned))

    def read_suspects_for(self, seconds: float, version: Version | None) -> None:
        """Read the most suspicious queues for some seconds, regardless of the accumulated budget."""
        self._suspect_budget = seconds
        self.read_suspects((), version, self._clock.now().mono + seconds)

    def read_suspects(self, redelivering: Collection[QueueKey], version: Version | None, deadline: float) -> None:
        """Read the most suspicious queues, one by one.

        Args:
            redelivering: queues whose channels redelivered messages.
            version: version of the broker.
            deadline: no request starts after this time (monotonic clock).
        """
        now = self._clock.now()
        if self._suspect_budget <= 0 or now.mono < self._paused_until:
            return
        keys = suspicious_queues(
            self._store.queues,
            self._store.read_at,
            self._store.changed,
            redelivering,
            now,
            MAX_SUSPECTS,
            include_unread=self.sweeps > 0,
            first=self._suspects_read,
        )
        for key in keys:
            if key[1] in _NO_PATH_NAMES:
                continue
            if self._suspect_budget <= 0 or self._clock.now().mono >= deadline:
                return
            self._suspects_read += 1
            seconds_before = self._client.seconds
            try:
                body = fetch_queue(self._client, *key)
            except Unreachable as error:
                self._pause_after(error)
                return
            except BrokerError as error:
                # A problem with one queue does not affect the others.
                self.error = str(error)
                continue
            finally:
                self._suspect_budget -= self._client.seconds - seconds_before
            self._record_success()
            if body is None:
                self._store.remove(key)
                continue
            queue, gaps = decode_queue(body, version)
            self._gaps |= gaps
            if queue is not None:
                self._store.put_details([queue], self._clock.now())
        # No suspicious queue remains, so pages get the rest of the budget.
        self._page_budget, self._suspect_budget = self._page_budget + self._suspect_budget, 0.0

    def sweep(self, version: Version | None, deadline: float) -> None:
        """Read pages from where the previous call stopped; start a new sweep at most once a period."""
        while self._page_budget > 0:
            now = self._clock.now()
            early = self._page == 1 and now.mono < self._sweep_began + self._min_sweep_seconds
            if early or now.mono < self._paused_until or now.mono >= deadline:
                return
            seconds_before = self._client.seconds
            try:
                page = fetch_page(self._client, QUEUES_PATH, self._page, columns_for(version))
            except BrokerError as error:
                self._pause_after(error)
                return
            finally:
                cost = self._client.seconds - seconds_before
                self._page_budget -= cost
            self._record_success()
            if self._page == 1:
                self._sweep_began, self._page_costs, self._gaps = now.mono, [], Gaps()
            self._page_costs.append(cost)
            self._page_count = max(page.page_count, self._page)
            queues, gaps = decode_queues(page.items, version)
            self._gaps += gaps
            self._store.put_details(queues, self._clock.now())
            if page.items and self._page < page.page_count:
                self._page += 1
                continue
            self._sweep_costs = (*self._sweep_costs, sum(self._page_costs))[-3:]
            self.sweeps, self._page, self._last_sweep_gaps = self.sweeps + 1, 1, self._gaps

    def _record_success(self) -> None:
        self.error, self._failures = None, 0

    def _pause_after(self, error: BrokerError) -> None:
        """Pause reading statistics, longer after every consecutive failure. Totals are not affected."""
        self.error = str(error)
        self._failures += 1
        pause = min(_MAX_PAUSE_SECONDS, max(1.0, self._min_sweep_seconds) * 2 ** min(self._failures - 1, 6))
        self._paused_until = self._clock.now().mono + pause

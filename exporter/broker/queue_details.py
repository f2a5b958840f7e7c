"""Statistics of single queues of a large broker: the suspicious one by one, the rest page by page, from an allowance.

What may be spent is saved up as time goes by, half of it for suspects, half for pages; a request may go into debt,
which the next ones pay. So no broker is asked for more than its share, however dear one request turns out to be.
"""

import statistics
from collections.abc import Collection, Iterable

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError, Unreachable
from exporter.broker import fetch
from exporter.broker.client import ManagementClient
from exporter.broker.fields import Gaps, Version
from exporter.broker.queue_store import Key, QueueStore
from exporter.broker.queue_suspicion import suspects
from exporter.broker.queues import columns_of, decode_queue, decode_queues

MOST_SUSPECTS = 50
"""Single queues that are asked for after one reading of the totals, at most."""

_START_SECONDS = 0.1
"""What may be spent on suspects after the first totals, when nothing could be saved up yet."""

_SAVED_FOR_SECONDS = 30.0
"""For at least this long an allowance may be saved up; more would only burst later."""

_LONGEST_REST = 60.0

_NO_PATHS = (".", "..")
"""Names that are steps in a path: such a queue is seen on its page only."""


class Details:
    """Asks for statistics and puts them into the store. Belongs to one thread at a time.

    Attributes:
        sweeps: times that all pages were gone through.
        error: why the latest request failed; None when it did not.
        gaps: of the latest pages and single queues.
    """

    def __init__(self, client: ManagementClient, clock: Clock, store: QueueStore) -> None:
        self._client, self._clock, self._store = client, clock, store
        self.sweeps = 0
        self.error: str | None = None
        self._failures, self._rest_until = 0, float("-inf")
        self._for_suspects, self._for_pages, self._saved_at = _START_SECONDS, 0.0, clock.now().mono
        self._rest_between, self._asked = 0.0, 0
        self._page, self._sweep_began = 1, float("-inf")
        self._costs: list[float] = []
        self._sweep_costs: tuple[float, ...] = ()
        self._pages = 0
        self._gaps, self._swept_gaps = Gaps(), Gaps()

    @property
    def sweep_cost(self) -> float:
        """Seconds of the broker's time for all pages; 0 before the first of them."""
        if self._sweep_costs:
            return statistics.median_low(self._sweep_costs)
        costs = tuple(self._costs)
        return statistics.fmean(costs) * self._pages if costs else 0.0

    @property
    def gaps(self) -> Gaps:
        """Field name -> queues with something unusable there, in the latest sweep."""
        return self._swept_gaps | self._gaps

    def begin(self, costs: Iterable[float]) -> None:
        """Begin anew, with the seconds that reading all pages took lately."""
        self._sweep_costs = tuple(costs)
        self._saved_at = self._clock.now().mono
        self.sweeps, self._page, self._costs = 0, 1, []

    def save_up(self, share: float, period: float, now: Instant) -> None:
        """Add what may be spent since this was last called.

        Args:
            share: of a core of the broker.
            period: seconds between two readings of the totals.
            now: the present moment.
        """
        most = share * max(period, _SAVED_FOR_SECONDS)
        more = share / 2 * max(0.0, now.mono - self._saved_at)
        self._for_suspects = min(most, self._for_suspects + more)
        self._for_pages = min(most, self._for_pages + more)
        self._saved_at, self._rest_between = now.mono, period

    def settle(self, seconds: float, planned: float) -> None:
        """Take on what the totals cost beyond plan; of a hiccup no more than twice the plan."""
        self._for_pages -= max(0.0, min(seconds, 2 * planned))

    def ask_suspects_for(self, seconds: float, version: Version | None) -> None:
        """Ask for the most suspicious queues for some seconds, whatever was saved up."""
        self._for_suspects = seconds
        self.ask_suspects((), version, self._clock.now().mono + seconds)

    def ask_suspects(self, named: Collection[Key], version: Version | None, until: float) -> None:
        """Ask for the most suspicious queues, one by one.

        Args:
            named: queues with a sign of redelivery.
            version: of the broker.
            until: no request begins later than this moment of the monotonic clock.
        """
        now = self._clock.now()
        if self._for_suspects <= 0 or now.mono < self._rest_until:
            return
        keys = suspects(
            self._store.queues,
            self._store.read_at,
            self._store.changed,
            named,
            now,
            MOST_SUSPECTS,
            unknown=self.sweeps > 0,
            first=self._asked,
        )
        for key in keys:
            if key[1] in _NO_PATHS:
                continue
            if self._for_suspects <= 0 or self._clock.now().mono >= until:
                return
            self._asked += 1
            spent = self._client.seconds
            try:
                body = fetch.queue(self._client, *key)
            except Unreachable as error:
                self._failed(error)
                return
            except BrokerError as error:
                # One odd queue says nothing of the others.
                self.error = str(error)
                continue
            finally:
                self._for_suspects -= self._client.seconds - spent
            self._went_well()
            if body is None:
                self._store.drop(key)
                continue
            queue, gaps = decode_queue(body, version)
            self._gaps |= gaps
            if queue is not None:
                self._store.put_details([queue], self._clock.now())
        # Nobody is left to suspect: the rest is for the pages.
        self._for_pages, self._for_suspects = self._for_pages + self._for_suspects, 0.0

    def sweep(self, version: Version | None, until: float) -> None:
        """Go on with the pages, one by one, where the last sweep ended; begin a new one at most once a period."""
        while self._for_pages > 0:
            now = self._clock.now()
            early = self._page == 1 and now.mono < self._sweep_began + self._rest_between
            if early or now.mono < self._rest_until or now.mono >= until:
                return
            spent = self._client.seconds
            try:
                page = fetch.page(self._client, fetch.QUEUES, self._page, columns_of(version))
            except BrokerError as error:
                self._failed(error)
                return
            finally:
                cost = self._client.seconds - spent
                self._for_pages -= cost
            self._went_well()
            if self._page == 1:
                self._sweep_began, self._costs, self._gaps = now.mono, [], Gaps()
            self._costs.append(cost)
            self._pages = max(page.pages, self._page)
            queues, gaps = decode_queues(page.items, version)
            self._gaps += gaps
            self._store.put_details(queues, self._clock.now())
            if page.items and self._page < page.pages:
                self._page += 1
                continue
            self._sweep_costs = (*self._sweep_costs, sum(self._costs))[-3:]
            self.sweeps, self._page, self._swept_gaps = self.sweeps + 1, 1, self._gaps

    def _went_well(self) -> None:
        self.error, self._failures = None, 0

    def _failed(self, error: BrokerError) -> None:
        """Rest longer with every failure in a row; the totals go on meanwhile."""
        self.error = str(error)
        self._failures += 1
        rest = min(_LONGEST_REST, max(1.0, self._rest_between) * 2 ** min(self._failures - 1, 6))
        self._rest_until = self._clock.now().mono + rest

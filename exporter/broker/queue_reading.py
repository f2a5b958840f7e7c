"""Reads the queues of one broker at what its budget allows: all in full, or totals of all and statistics by turns.

In full: every queue with all its statistics, page by page, each time. Where that costs more than the queues' share,
and there are many: totals of all queues in one answer, and statistics queue by queue for the suspicious and page by
page for the rest, as fast as the share allows.
"""

import statistics
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ackscope.clock import Clock, Instant
from exporter.broker import fetch
from exporter.broker.calm import Calm
from exporter.broker.client import ManagementClient
from exporter.broker.fields import Gaps, Version
from exporter.broker.queue_details import Details
from exporter.broker.queue_store import Coverage, Key, QueueStore
from exporter.broker.queues import columns_of, decode_queues
from exporter.broker.reading import Reading

LARGE = 2000
"""From this many queues on, a broker that was never read is asked for totals first."""

_SLACK = 1.25
"""Reading in full is taken up again when it would fit with this much to spare: not to and fro at the limit."""

_SWEEPS_PER_TOTALS = 4
"""What reading in full costs, in readings of the totals, before it was measured (4.0: 5 to 7 times)."""

_LONGEST_STEP = 15.0
"""Seconds that statistics are asked for after the totals at most: totals are shown when these are done."""

_SAMPLE = 20

LACKING = (
    "gives no totals of its queues (disable_stats and enable_queue_totals of /api/queues); "
    "all queues are read in full, as often as the budget allows"
)


class Mode(StrEnum):
    """How the queues are read."""

    FULL = "full"
    TOTALS = "totals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the queues may cost.

    Attributes:
        share: of a core of the broker, for all that concerns queues.
        shortest: seconds between two readings when nothing is scarce.
        totals_every: seconds between two readings of the totals.
        details_share: the part of `share` that is for statistics of single queues and pages.
        full_every: seconds between two readings in full that are enough where queues are fewer than `LARGE`; 0 where
            totals are wanted, which are younger.
        full_most: the share of a core that those may take, be it more than `share`.
    """

    share: float
    shortest: float
    totals_every: float
    details_share: float
    full_every: float = 0.0
    full_most: float = 0.0

    def bears(self, cost: float) -> bool:
        """Whether a reading in full of so many seconds may be made every `full_every`."""
        return cost <= self.full_most * self.full_every


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What other families tell about the queues.

    Attributes:
        expected: how many there are by the overview; None where it does not tell.
        statistics: False where the broker collects none: the full list then lacks even the totals.
        named: queues that consumers or channels give a sign of redelivery for.
    """

    expected: int | None = None
    statistics: bool | None = None
    named: Collection[Key] = ()


class QueueReader:
    """Reads the queues of one broker; one step after the other, each from one thread.

    Attributes:
        mode: None until the first step chose.
        lacking: whether the broker gives no totals; it is then read in full, however large.
        details: the turns of the statistics.
    """

    def __init__(self, client: ManagementClient, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._store = QueueStore()
        self.details = Details(client, clock, self._store)
        self.mode: Mode | None = None
        self.lacking = False
        self._version: Version | None = None
        self._statistics: bool | None = None
        self._full: Reading | None = None
        self._full_costs: tuple[float, ...] = ()
        self._calm = Calm()
        self._totals_costs: tuple[float, ...] = ()
        self._totals_began = float("-inf")

    @property
    def full_cost(self) -> float:
        """Seconds of the broker's time for reading all in full, as measured or reckoned; 0 while nothing was read."""
        if self.mode is not Mode.TOTALS:
            # The least: other work makes a reading longer, never shorter, and a small broker must not pay for it.
            return min(*self._full_costs, self._calm.most()) if self._full_costs else 0.0
        return (self.details.sweep_cost or _SWEEPS_PER_TOTALS * self.totals_cost) * _SLACK

    @property
    def totals_cost(self) -> float:
        """Seconds of the broker's time for the totals of all queues; 0 while they were not read."""
        # The middle, not the least: what they cost beyond plan is taken from the statistics, which must not starve.
        return statistics.median_low(self._totals_costs) if self._totals_costs else 0.0

    def coverage(self) -> Coverage | None:
        """How well statistics are known; None where all are read every time, or where there are none."""
        return self._store.coverage() if self.mode is Mode.TOTALS and self._statistics is not False else None

    def step(self, allowance: Allowance, hints: Hints, version: Version | None) -> Reading | None:
        """Read what is due.

        Returns:
            a new reading of all queues; None where it was only the turn of some statistics, which the next one shows.

        Raises:
            BrokerError: the list of all queues could not be read; where statistics could not, `details.error` tells.
        """
        began = self._clock.now()
        self._statistics = hints.statistics
        if version != self._version:
            self._version, self.lacking = version, False
        if self.mode is None and hints.expected is None:
            # The overview hangs, or may not be seen: the first page tells as well.
            hints = replace(hints, expected=fetch.page(self._client, fetch.QUEUES, 1).pages * fetch.PAGE)
        self._choose(allowance, hints)
        if self.mode is Mode.FULL:
            return self._read_full(version, began)
        self.details.save_up(allowance.details_share, allowance.totals_every, began)
        planned, spent = self.totals_cost, self._client.seconds
        # Half a step early is near enough: the next step comes a whole one later.
        due = began.mono + allowance.shortest / 2 >= self._totals_began + allowance.totals_every
        reading = self._read_totals(version, began, allowance.totals_every, allowance.shortest) if due else None
        if due and reading is None:
            self.lacking, self.mode = True, Mode.FULL
            return self._read_full(version, began)
        if reading is not None and planned:
            self.details.settle(self._client.seconds - spent - planned, planned)
        now = self._clock.now()
        # As long as the totals took here: of 100,000 queues on a busy machine they are due again before they are done.
        until = now.mono + max(allowance.shortest / 2, min(now.since(began), _LONGEST_STEP))
        if reading is not None and hints.statistics is not False:
            self.details.ask_suspects(hints.named, version, until)
        self.details.sweep(version, until)
        return None if reading is None else self._joined(reading)

    def look(self, version: Version | None, suspects_seconds: float, *, statistics: bool) -> Reading | None:
        """Totals of all queues and statistics of the most suspicious: one look at a large broker.

        Args:
            version: of the broker.
            suspects_seconds: how long single queues may be asked for.
            statistics: whether the broker collects any.

        Returns:
            None where the broker gives no totals.

        Raises:
            BrokerError: the totals could not be read.
        """
        reading = self._read_totals(version, self._clock.now())
        if reading is None:
            return None
        if statistics:
            self.details.ask_suspects_for(suspects_seconds, version)
        return self._joined(reading)

    def next_mode(self, allowance: Allowance, hints: Hints) -> Mode:
        """The mode of the next step, from what the readings before it cost."""
        match self.mode:
            case None:
                many = (hints.expected or 0) >= LARGE
                return Mode.TOTALS if many or hints.statistics is False else Mode.FULL
            case Mode.TOTALS:
                fits = self._fits(allowance, hints, self._store.count)
                return Mode.FULL if fits and self.details.sweeps else Mode.TOTALS
            case Mode.FULL:
                # Held here, for a step may be under way in its own thread.
                full = self._full
                count = 0 if full is None else len(full.value)
                # One page is as cheap as totals.
                many = count > fetch.PAGE or hints.statistics is False
                wanted = many and not self.lacking and not self._fits(allowance, hints, count)
                return Mode.TOTALS if wanted else Mode.FULL

    def _fits(self, allowance: Allowance, hints: Hints, count: int) -> bool:
        """Whether so many queues can be read in full, often enough."""
        if hints.statistics is False:
            return False
        always = self.full_cost <= allowance.share * allowance.shortest * (1 + 1e-9)
        return always or (count < LARGE and allowance.bears(self.full_cost))

    def _choose(self, allowance: Allowance, hints: Hints) -> None:
        before, self.mode = self.mode, self.next_mode(allowance, hints)
        if before is Mode.FULL and self.mode is Mode.TOTALS:
            self._totals_began = float("-inf")
            if self._full is not None:
                self._store.seed(self._full.value, self._full.at)
            self.details.begin(self._full_costs)
        if self.mode is Mode.TOTALS:
            # The store has what it held.
            self._full = None

    def _read_full(self, version: Version | None, began: Instant) -> Reading:
        client = self._client
        spent, asked, received = client.seconds, client.requests, client.received
        payload = fetch.pages(client, fetch.QUEUES, columns_of(version))
        cost = client.seconds - spent
        self._full_costs = (*self._full_costs, cost)[-3:]
        self._calm.note(cost, client.requests - asked, client.received - received, began.mono)
        value, gaps = decode_queues(payload, version)
        done = self._clock.now()
        self._full = Reading(value=value, gaps=dict(gaps), at=done, seconds=done.since(began))
        return self._full

    def _joined(self, totals: Reading) -> Reading:
        """All queues with what is known of each, of the moment of their totals."""
        gaps = dict(self.details.gaps + Gaps(totals.gaps))
        return Reading(value=self._store.queues, gaps=gaps, at=totals.at, seconds=totals.seconds)

    def _read_totals(
        self, version: Version | None, began: Instant, every: float = 0.0, shortest: float = 0.0
    ) -> Reading | None:
        """The totals, in the store; None where the broker does not give them."""
        spent = self._client.seconds
        payload = fetch.totals(self._client)
        self._totals_costs = (*self._totals_costs, self._client.seconds - spent)[-3:]
        try:
            gaps = self._store.put_totals(checked(payload), version)
        except NoTotals:
            return None
        due = self._totals_began + every
        # What began early or late for the sake of a step has its next turn as if it had not.
        self._totals_began = due if due > began.mono - shortest else began.mono
        done = self._clock.now()
        return Reading(value=None, gaps=gaps, at=done, seconds=done.since(began))


class NoTotals(Exception):
    """An answer holds something else than the totals that were asked for."""


def checked(payload: Iterable[Any]) -> Iterator[Any]:
    """The same items, as long as they are totals of queues.

    Raises:
        NoTotals: the first ones hold full statistics (the parameters are ignored), or in the end none held totals.
    """
    expected = told = False
    for number, item in enumerate(payload):
        if isinstance(item, dict):
            if number < _SAMPLE and ("message_stats" in item or "memory" in item):
                raise NoTotals
            # Streams have none in any version from 3.10 to 4.3.
            if not told and item.get("type") != "stream":
                expected, told = True, "messages" in item
        yield item
    if expected and not told:
        raise NoTotals

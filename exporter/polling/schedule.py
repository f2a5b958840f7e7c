"""Scheduling state of one endpoint family: its latest good reading, its cost, and when it is due."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Part
from exporter.broker.cost_model import CostBaseline
from exporter.broker.families import POLLED
from exporter.broker.reader import PollCost
from exporter.polling.budget import VITAL_MAX_SHARE, Demand

MAX_RETRY_SECONDS = 60.0
"""Longest time from a failure to the next attempt."""

UNAVAILABLE_RETRY_SECONDS = 300.0
"""Seconds to the next attempt for a family that the broker does not provide. Only a changed configuration helps."""

VITAL_FAMILIES = ("overview", "nodes", "health")
"""Families that show whether the broker is healthy: cheap, and polled regardless of the budget."""

CLIENT_FAMILIES = ("channels", "consumers", "connections")
"""Families of clients. Rules compare two consecutive readings of them, so the second one must not come late."""

OLDEST_SECONDS = 240.0
"""Oldest age of a reading to which one may delay the next: rules use none that is older than five minutes."""

_PROBING_FAMILY = "overview"
"""The family that is retried without backoff, to notice when the broker is back."""

_SAMPLES_FOR_COST = 2
"""Number of readings after which the cost of a family is known. The minimum of two ignores one outlier."""

_UNMEASURED_MAX_INTERVALS = 4.0
"""Until the cost is known, longest interval of a family, in shortest intervals.

It may be longer if the family would exceed `_UNMEASURED_MAX_SHARE`.
"""

_UNMEASURED_MAX_SHARE = 0.05
"""Share of one core that a family may take until its cost is known; client families may take `VITAL_MAX_SHARE`.

The limit is generous, because a broker that is starting, or read in full for the first time, is slow only for a moment.
"""


@dataclass(frozen=True, slots=True)
class PollStats:
    """Statistics of polling one family so far.

    Attributes:
        attempts: readings that ended, successful or not.
        failures: readings that failed.
        last_seconds: duration of the latest reading; None before the first.
        bytes_total: bytes of all answers.
        cost_seconds: broker time, from each request to the end of its answer, less the round trip.
        requests: number of requests.
        interval: seconds between the starts of two readings, as currently planned; None before the first.
    """

    attempts: int = 0
    failures: int = 0
    last_seconds: float | None = None
    bytes_total: int = 0
    cost_seconds: float = 0.0
    requests: int = 0
    interval: float | None = None


@dataclass(slots=True)
class EndpointSchedule:
    """Schedule and latest reading of one family of one cluster. Guarded by the poller's lock.

    Attributes:
        min_interval: seconds between the starts of two readings if the budget does not limit them.
        min_retry: seconds from a first failure to the next attempt, at least.
        part: the latest good reading and the latest error.
        in_flight: whether a reading is running.
        started_at: nominal start of the latest reading (monotonic clock). Earlier than the real start to make the next
            one due sooner.
        retry_after: seconds from `started_at` to the next attempt after a failure; None after a success.
        unavailable: whether the broker does not provide this family.
    """

    name: str
    min_interval: float
    min_retry: float
    part: Part[Any] = field(default_factory=Part)
    stats: PollStats = PollStats()
    in_flight: bool = False
    started_at: float = float("-inf")
    retry_after: float | None = None
    unavailable: bool = False
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    _baseline: CostBaseline = field(init=False)
    _consecutive_failures: int = 0
    _reset_in_flight: bool = False
    _due: float = float("-inf")

    def __post_init__(self) -> None:
        self._baseline = CostBaseline(cost_follows_size=POLLED[self.name].cost_follows_size)

    @property
    def cost(self) -> float:
        """Seconds of broker time for a reading: the minimum of the last three, capped by the cost baseline.

        It is the minimum because costs are measured from here: other load makes a reading longer, never shorter.
        """
        return min(self._measured_cost, self._baseline.max_cost())

    @property
    def _measured_cost(self) -> float:
        return min(self._costs, default=0.0)

    @property
    def demand(self) -> Demand:
        """What the family needs of the budget."""
        family = POLLED[self.name]
        return Demand(
            cost=self.cost,
            min_interval=self.min_interval,
            vital=self.name in VITAL_FAMILIES,
            weight=family.weight,
            min_share=family.min_share,
        )

    def corrected_interval(self, interval: float) -> float:
        """Return the interval of the budget in seconds, corrected for an uncertain cost.

        It is shorter until the cost is known, so that one outlier at the start does not stop polling for minutes. It is
        longer if the broker is overloaded and answers slowly, so that the broker is never polled constantly.
        """
        if len(self._costs) >= _SAMPLES_FOR_COST:
            overloaded = self.cost < self._measured_cost
            return max(interval, self._measured_cost / VITAL_MAX_SHARE) if overloaded else interval
        max_share = VITAL_MAX_SHARE if self.name in CLIENT_FAMILIES else _UNMEASURED_MAX_SHARE
        return min(interval, max(_UNMEASURED_MAX_INTERVALS * self.min_interval, self.cost / max_share))

    def is_due(self, interval: float, horizon: float) -> bool:
        """Whether to start a reading now.

        Args:
            interval: seconds between two readings.
            horizon: readings that become due before this time (monotonic clock) start now.
        """
        retry_after = self.retry_after
        return not self.in_flight and self.started_at + (interval if retry_after is None else retry_after) <= horizon

    def is_wanted(self, share: float, horizon: float) -> bool:
        """Whether to start a reading now that explains what another family shows.

        Args:
            share: share of one core that such readings may take.
            horizon: as of `is_due`.
        """
        return self.is_due(max(self.min_interval, self.cost / share), horizon)

    def start_early(self, interval: float, horizon: float) -> None:
        """Record that such a reading starts. The next one is later instead, unless this one would be too old then."""
        self.start(min(interval, horizon + OLDEST_SECONDS - interval - self.started_at))

    def start(self, interval: float) -> None:
        """Record that a reading starts. If it is early or late, the next one is due as if it had been on time."""
        self.in_flight, self._due = True, self.started_at + interval

    def reset(self) -> None:
        """Make the family due now, and forget costs that were measured while the broker was unreachable."""
        self.started_at, self._due = float("-inf"), float("-inf")
        self.retry_after, self._consecutive_failures = None, 0
        self._reset_in_flight = self.in_flight
        self._costs.clear()

    def finish_step(self, began: Instant, after: PollCost) -> None:
        """Record that a step ended without a new reading: it read statistics that the next reading will contain."""
        self.in_flight, self.started_at = False, self._nominal_start(began)
        self._record_cost(after)

    def finish(self, part: Part[Any], began: Instant, ended: Instant, before: PollCost, after: PollCost) -> None:
        """Record that a reading ended.

        Args:
            part: the result; it has an error if the reading failed.
            began: when the reading started.
            ended: when the reading ended.
            before: accumulated cost of the family when the reading started.
            after: accumulated cost of the family now.
        """
        seconds, failed, cost = ended.since(began), part.error is not None, after.seconds - before.seconds
        first, was_reset = not self.stats.attempts, self._reset_in_flight
        self._reset_in_flight = False
        self.part, self.in_flight = part, False
        self.started_at = began.mono if failed else self._nominal_start(began)
        self.unavailable = False
        self._record_cost(after)
        self.stats = replace(
            self.stats,
            attempts=self.stats.attempts + 1,
            failures=self.stats.failures + failed,
            last_seconds=seconds,
        )
        if not failed:
            self._costs.append(cost)
            self._baseline.record(cost, after.requests - before.requests, after.received - before.received, began.mono)
            self.retry_after, self._consecutive_failures = None, 0
            if first:
                # Spread families with long intervals over time instead of reading them all in the same round.
                self.started_at -= self.min_interval * _phase(self.name)
            return
        self._consecutive_failures += 1
        if self.name == _PROBING_FAMILY:
            # No backoff: this family shows when the broker is back, however long it was unreachable.
            self.retry_after = seconds + self.min_retry
            return
        shortest = max(self.min_retry, 2 * seconds)
        backoff = shortest * 2.0 ** min(self._consecutive_failures - 1, 10)
        self.retry_after = max(shortest, min(MAX_RETRY_SECONDS, backoff))
        if was_reset:
            # The reading started before the broker was back, so its failure says nothing about the present state.
            self.retry_after, self._consecutive_failures = seconds, 0

    def _nominal_start(self, began: Instant) -> float:
        """Return the time from which the next interval counts, in seconds of the monotonic clock."""
        return self._due if self._due > began.mono - self.min_retry else began.mono

    def _record_cost(self, after: PollCost) -> None:
        self.stats = replace(
            self.stats, bytes_total=after.received, cost_seconds=after.seconds, requests=after.requests
        )

    def current_part(self) -> Part[Any]:
        """Return the part with the current interval. It is the same object as long as neither changes."""
        if self.part.every != self.stats.interval:
            self.part = replace(self.part, every=self.stats.interval)
        return self.part

    def mark_unavailable(self) -> None:
        """Record that the broker does not provide this family, and retry it rarely."""
        self.unavailable, self.retry_after = True, UNAVAILABLE_RETRY_SECONDS


def _phase(name: str) -> float:
    """Return a fraction from 0 to below 0.5 that depends only on the name."""
    return (sum(name.encode()) % 8) / 16

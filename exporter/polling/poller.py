"""Polls one cluster continuously and keeps the latest good reading of every family.

Each family has at most one reading in flight and waits for no other, so a family that hangs does not block the others.
A round starts the readings that are due, waits for up to half an interval, and publishes a snapshot. Interval, cost and
budget decide what is due.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.log import get_logger
from ackscope.snapshot import Part, Snapshot
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.families import METRICS, POLLED, PUBLISHES, FamilyReading
from exporter.broker.http_errors import NoStatistics
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.queue_history import past_snapshots
from exporter.broker.queue_reader import QueueBudget, QueueMode
from exporter.broker.queue_store import DetailCoverage
from exporter.broker.reader import BrokerReader, PollCost
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import assemble, joined_parts, to_part
from exporter.polling.adaptive_budget import AdaptiveBudget
from exporter.polling.budget import Demand, family_shares, interval_for, split_queue_share
from exporter.polling.pool import WorkerPool
from exporter.polling.publish_hints import PublishHints
from exporter.polling.redelivery_hints import RedeliveryHints
from exporter.polling.routing_hints import RoutingHints
from exporter.polling.schedule import EndpointSchedule, PollStats
from exporter.polling.settings import PollSettings
from exporter.polling.state_log import StateChangeLogger

log = get_logger(__name__)

_STOP_SECONDS = 2.0

_GROW_AFTER_SECONDS = 0.25
"""If no reading ends for this many seconds, the pool gets one more thread for a waiting reading."""

_SPENT_WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerStats:
    """Cost and progress of polling one cluster.

    Attributes:
        families: statistics by family.
        budget: current limit of polling, as a share of one core of the broker.
        spent: share of one core that polling took in the last minute, without vital families; None before it is known.
        mode: how the queues are read; None before their first reading.
        coverage: coverage of the queue statistics; None if all are read every time.
    """

    families: Mapping[str, PollStats]
    budget: float
    spent: float | None = None
    mode: QueueMode | None = None
    coverage: DetailCoverage | None = None


class Poller:
    """Polls one cluster in the background.

    Args:
        cluster: its name in the configuration.
        management: how to reach it.
        settings: interval and budget.
        clock: timestamps of readings and snapshots.
        on_snapshot: called from the poller's thread after each round; should be fast.
        on_past: called once before it, in the same thread, with snapshots of the time before the first reading.
        metrics: reads the Prometheus endpoints of the nodes; see `BrokerReader`.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be read.
    """

    def __init__(
        self,
        cluster: str,
        management: ManagementSettings,
        settings: PollSettings,
        clock: Clock,
        on_snapshot: Callable[[Snapshot], None],
        metrics: MetricsReader | None = None,
        on_past: Callable[[tuple[Snapshot, ...]], None] | None = None,
    ) -> None:
        self._cluster, self._clock, self._on_snapshot = cluster, clock, on_snapshot
        self._management, self._on_past = management, on_past
        self._interval, self._budget = settings.interval, AdaptiveBudget(settings.budget)
        self._reader = BrokerReader(management, clock, f"clusters.{cluster}.management", metrics=metrics)
        self._changed = threading.Condition()
        self._schedules = {
            name: EndpointSchedule(name, max(self._interval, POLLED[name].min_interval), self._interval)
            for name in self._reader.families
        }
        self._pool = WorkerPool(f"poll-{cluster}-idle", max_threads=len(self._schedules))
        self._round_thread = threading.Thread(target=self._run_rounds, name=f"poll-{cluster}", daemon=True)
        # Both guarded by `_changed`: the broker is reachable again; a reading ended after its round was published.
        self._stopping = self._recovered = self._late_reading = False
        self._latest = Snapshot(cluster=cluster, taken=clock.now())
        self._state_log = StateChangeLogger(cluster)
        self._queue_budget = QueueBudget(
            share=0.0, min_interval=self._interval, totals_interval=self._interval, details_share=0.0
        )
        self._redelivery_hints, self._routing_hints = RedeliveryHints(), RoutingHints()
        self._publish_hints = PublishHints()
        # Families that are read only on suspicion, and are wanted now.
        self._suspected: frozenset[str] = frozenset()
        self._coverage: DetailCoverage | None = None
        # (monotonic time, broker seconds so far) of the rounds of the last minute.
        self._spending: deque[tuple[float, float]] = deque()

    @property
    def latest(self) -> Snapshot:
        """The latest snapshot; one with empty parts before the first round."""
        return self._latest

    @property
    def stats(self) -> PollerStats:
        """Statistics of polling so far."""
        with self._changed:
            spent = None
            if len(self._spending) > 1:
                (start, spent_before), (end, spent_after) = self._spending[0], self._spending[-1]
                spent = (spent_after - spent_before) / max(end - start, 1e-9)
            return PollerStats(
                families={name: schedule.stats for name, schedule in self._schedules.items()},
                budget=self._budget.share,
                spent=spent,
                mode=self._reader.queues.mode,
                coverage=self._coverage,
            )

    @property
    def threads(self) -> list[threading.Thread]:
        """The live threads."""
        return [thread for thread in (self._round_thread, *self._pool.threads) if thread.is_alive()]

    def start(self) -> None:
        """Start the first round."""
        self._round_thread.start()

    def stop(self) -> None:
        """Stop polling. A hanging request ends with its own timeout, and its answer is ignored."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._pool.stop()
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if not self.threads:
            self._reader.close()
            if self._reader.metrics is not None:
                self._reader.metrics.close()

    # ------------------------------------------------------------ in the threads of the readings

    def _poll(self, schedule: EndpointSchedule, budget: QueueBudget, redelivering: frozenset[QueueKey]) -> None:
        """Read one family once."""
        family = schedule.name
        began, before = self._clock.now(), self._reader.cost(family)
        unavailable = False
        part: Part[Any] | None
        try:
            reading = self._read(family, budget, redelivering)
            part = None if reading is None else to_part(reading)
            if reading is not None and family == "queues":
                self._coverage = self._reader.queues.coverage()
        except BrokerError as error:
            part = replace(schedule.part, error=str(error))
            # Endpoints that nobody configured may well not exist.
            guessed = family in {METRICS, PUBLISHES} and not (self._reader.metrics and self._reader.metrics.configured)
            unavailable = isinstance(error, NoStatistics) or guessed
        except Exception:
            # Boundary: a bug in one family must not end polling, neither of this family nor of the others.
            log.exception("internal error in ackscope while reading", cluster=self._cluster, endpoint=family)
            part = replace(schedule.part, error="internal error in ackscope; see its log")
        self._finish(schedule, part, began, before, unavailable=unavailable)

    def _read(self, family: str, budget: QueueBudget, redelivering: frozenset[QueueKey]) -> FamilyReading[Any] | None:
        return self._reader.step_queues(budget, redelivering) if family == "queues" else self._reader.read(family)

    def _finish(
        self, schedule: EndpointSchedule, part: Part[Any] | None, began: Instant, before: PollCost, *, unavailable: bool
    ) -> None:
        ended, after = self._clock.now(), self._reader.cost(schedule.name)
        with self._changed:
            had_failed = schedule.name == "overview" and schedule.part.error is not None
            recovered = had_failed and part is not None and part.error is None
            if part is None:
                schedule.finish_step(began, after)
            else:
                schedule.finish(part, began, ended, before, after)
                if unavailable:
                    schedule.mark_unavailable()
            if recovered:
                # The next round starts now, with every family.
                self._recovered = True
                for other in self._schedules.values():
                    if other is not schedule:
                        other.reset()
            # Its round was already published: publish another snapshot now instead of with the next round.
            is_late = part is not None and ended.since(began) > self._interval / 2
            self._late_reading = self._late_reading or is_late
            self._changed.notify_all()

    # ------------------------------------------------------------ in the thread of the rounds

    def _run_rounds(self) -> None:
        while not self._stopping:
            began = self._clock.now()
            self._guarded(partial(self._round, began))
            while self._wait_for_late_reading(began.mono + self._interval):
                self._guarded(self._publish)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            # Boundary: a bug in a receiver of snapshots must not end polling.
            log.exception("publishing a snapshot failed", cluster=self._cluster)

    def _wait_for_late_reading(self, deadline: float) -> bool:
        """Wait until the next round is due. Returns True earlier if a late reading has ended."""
        with self._changed:
            remaining = deadline - self._clock.now().mono
            self._changed.wait_for(
                lambda: self._stopping or self._recovered or self._late_reading, timeout=max(0.0, remaining)
            )
            return self._late_reading and not (self._stopping or self._recovered)

    def _round(self, began: Instant) -> None:
        """Start the due readings, wait up to half an interval for them, and publish a snapshot."""
        with self._changed:
            self._recovered = False
            self._plan(began)
            # Readings that become due within half an interval start now, or they would wait for the next round.
            started = self._start_due(began.mono + self._interval / 2)
            self._await(started)
        self._publish()

    def _publish(self) -> None:
        with self._changed:
            if self._stopping:
                return
            self._late_reading = False
            parts = {family: schedule.current_part() for family, schedule in self._schedules.items()}
            unavailable = [family for family, schedule in self._schedules.items() if schedule.unavailable]
        joined, prometheus = joined_parts(self._reader, parts)
        snapshot = assemble(self._cluster, self._clock.now(), joined, prometheus, parts.get(PUBLISHES))
        self._latest = snapshot
        self._state_log.log_changes(snapshot, unavailable, self._reader.queues)
        self._publish_past(snapshot)
        self._on_snapshot(snapshot)

    def _publish_past(self, snapshot: Snapshot) -> None:
        """Publish what the broker kept of the time before the first snapshot with queues and nodes, once."""
        parts = (snapshot.overview, snapshot.nodes, snapshot.queues)
        if self._on_past is None or any(part.value is None for part in parts):
            return
        on_past, self._on_past = self._on_past, None
        past = past_snapshots(self._management, snapshot)
        if past:
            on_past(past)

    def _plan(self, now: Instant) -> None:
        """Divide the budget by current costs and set the interval of each family."""
        schedules, queues = self._schedules, self._reader.queues
        demands = {name: schedule.demand for name, schedule in schedules.items() if self._may_read(name)}
        queues_interval = 0.0
        if "queues" in schedules:
            demands["queues"] = replace(demands["queues"], cost=queues.full_cost)
            queues_interval = schedules["queues"].stats.interval or 0.0
        demands = self._budget.plan(demands, self._part("overview"), self._part("nodes"), queues_interval)
        self._reader.check_max_age = self._budget.check_max_age
        shares = family_shares(demands, self._budget.share)
        for name in demands:
            schedule = schedules[name]
            interval = schedule.corrected_interval(interval_for(demands[name], shares[name]))
            schedule.stats = replace(schedule.stats, interval=interval)
        if "queues" in schedules:
            self._plan_queues(shares["queues"])
        spent = sum(schedule.stats.cost_seconds for schedule in schedules.values() if not schedule.demand.vital)
        self._spending.append((now.mono, spent))
        while len(self._spending) > 2 and now.mono - self._spending[1][0] >= _SPENT_WINDOW_SECONDS:
            self._spending.popleft()

    def _plan_queues(self, share: float) -> None:
        """Set the budget and the interval of the queues. Both depend on the mode in which queues are read."""
        schedule, queues = self._schedules["queues"], self._reader.queues
        totals = Demand(cost=queues.totals_cost, min_interval=self._interval)
        totals_interval, details_share = (
            split_queue_share(totals, share, self._budget.totals_max_share) if share > 0 else (self._interval, 0.0)
        )
        totals_interval = schedule.corrected_interval(totals_interval)
        full_interval = self._budget.full_interval
        self._queue_budget = QueueBudget(
            share=share,
            min_interval=self._interval,
            totals_interval=totals_interval,
            details_share=details_share,
            full_interval=full_interval,
            full_max_share=self._budget.totals_max_share,
        )
        if queues.mode is QueueMode.TOTALS:
            schedule.stats = replace(schedule.stats, interval=totals_interval)
        elif full_interval and schedule.stats.interval and self._queue_budget.allows_full(queues.full_cost):
            acceptable = max(self._interval, full_interval)
            schedule.stats = replace(schedule.stats, interval=min(schedule.stats.interval, acceptable))

    def _may_read(self, name: str) -> bool:
        return not POLLED[name].on_suspicion or name in self._suspected

    def _part(self, name: str) -> Part[Any]:
        """Return the latest reading of a family; if its figures come from the second source, as published last."""
        read = self._schedules.get(name)
        return self._latest.parts[name] if read is None or self._latest.prometheus.value is not None else read.part

    def _start_due(self, horizon: float) -> list[EndpointSchedule]:
        channels, consumers, queues = (self._part(name) for name in ("channels", "consumers", "queues"))
        budget, redelivering = self._queue_budget, self._redelivery_hints.update(channels, consumers, queues)
        self._suspected = self._publish_hints.update(channels, self._part("connections"))
        wanted = self._routing_hints.update(self._part("exchanges"), self._part("bindings"))
        # In mode TOTALS a step runs every round: it reads totals when they are due, and statistics in between.
        steps = self._reader.queues.next_mode(budget, self._reader.queue_hints()) is QueueMode.TOTALS
        started = []
        for name, schedule in self._schedules.items():
            interval = self._interval if name == "queues" and steps else schedule.stats.interval
            is_due = self._may_read(name) and schedule.is_due(interval or 0.0, horizon)
            if is_due or (name in wanted and schedule.is_wanted(self._budget.max_share, horizon)):
                if is_due:
                    schedule.start(interval or 0.0)
                else:
                    schedule.start_early(interval or 0.0, horizon)
                started.append(schedule)
                self._pool.submit(f"poll-{self._cluster}-{name}", partial(self._poll, schedule, budget, redelivering))
        return started

    def _await(self, started: list[EndpointSchedule]) -> None:
        """Wait until all readings have ended, for at most half an interval. The pool grows if none ends."""
        deadline = time.monotonic() + self._interval / 2
        while not (self._stopping or self._recovered) and any(schedule.in_flight for schedule in started):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            if not self._changed.wait(timeout=min(_GROW_AFTER_SECONDS, remaining)):
                self._pool.grow()

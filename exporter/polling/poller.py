"""Reads one cluster again and again, and keeps what was last good.

Every family has never more than one request under way, and waits for no other's: one that hangs starves none. A round
starts what is due, waits a little, and hands out a snapshot of what is there. How often a family is due, its cost and
the budget decide.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Snapshot
from exporter.broker.failures import NoStatistics
from exporter.broker.families import FAMILIES
from exporter.broker.queue_reading import Allowance, Mode
from exporter.broker.queue_store import Coverage, Key
from exporter.broker.read import assemble, part_of
from exporter.broker.reader import Reader, Spent
from exporter.broker.reading import Reading
from exporter.broker.settings import ManagementSettings
from exporter.polling import budget
from exporter.polling.allowed import Allowed
from exporter.polling.line import Line, PollStats
from exporter.polling.settings import PollSettings
from exporter.polling.signs import Signs
from exporter.polling.telling import Teller
from exporter.polling.workers import Workers

log = logging.getLogger(__name__)

_STOP_SECONDS = 2.0

_RELIEF_SECONDS = 0.25
"""Where none ends for so long, a reading that is not begun yet gets one more thread."""

_SPENT_OVER_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerStats:
    """What polling one cluster costs.

    Attributes:
        families: family name -> its counts.
        budget: the share of a core of the broker that is allowed now.
        spent: the share that was taken lately, vital families not counted; None before there is a measure.
        mode: how the queues are read; None before the first reading.
        coverage: how well statistics of queues are known; None where all are read every time.
    """

    families: Mapping[str, PollStats]
    budget: float
    spent: float | None = None
    mode: Mode | None = None
    coverage: Coverage | None = None


class Poller:
    """Polls one cluster in the background.

    Args:
        cluster: its name in the configuration.
        management: how to reach it.
        settings: how often, and what it may cost.
        clock: dates readings and snapshots.
        on_snapshot: called from the poller's own thread after each round; it should be quick.

    Raises:
        UsageError: the address is not one.
        ConfigError: a file of the settings cannot be read.
    """

    def __init__(
        self,
        cluster: str,
        management: ManagementSettings,
        settings: PollSettings,
        clock: Clock,
        on_snapshot: Callable[[Snapshot], None],
    ) -> None:
        self._cluster, self._clock, self._on_snapshot = cluster, clock, on_snapshot
        self._interval, self._allowed = settings.interval, Allowed(settings.budget)
        self._reader = Reader(management, clock, f"clusters.{cluster}.management")
        self._changed = threading.Condition()
        self._lines = {
            name: Line(name, max(self._interval, family.every), self._interval) for name, family in FAMILIES.items()
        }
        self._workers = Workers(f"poll-{cluster}-idle", most=len(FAMILIES))
        self._pacer = threading.Thread(target=self._pace, name=f"poll-{cluster}", daemon=True)
        self._stopping = self._back = self._late = False
        self._latest = Snapshot(cluster=cluster, taken=clock.now())
        self._teller = Teller(cluster)
        self._allowance = Allowance(share=0.0, shortest=self._interval, totals_every=self._interval, details_share=0.0)
        self._signs = Signs()
        self._coverage: Coverage | None = None
        self._meter: deque[tuple[float, float]] = deque()

    @property
    def latest(self) -> Snapshot:
        """The last snapshot; one of empty parts before the first round."""
        return self._latest

    @property
    def stats(self) -> PollerStats:
        """What polling has cost so far."""
        with self._changed:
            spent = None
            if len(self._meter) > 1:
                (since, from_), (until, to) = self._meter[0], self._meter[-1]
                spent = (to - from_) / max(until - since, 1e-9)
            return PollerStats(
                families={name: line.stats for name, line in self._lines.items()},
                budget=self._allowed.share,
                spent=spent,
                mode=self._reader.queues.mode,
                coverage=self._coverage,
            )

    @property
    def threads(self) -> list[threading.Thread]:
        """Those that live now."""
        return [thread for thread in (self._pacer, *self._workers.threads) if thread.is_alive()]

    def start(self) -> None:
        """Begin; the first round starts at once."""
        self._pacer.start()

    def stop(self) -> None:
        """End. A request that hangs ends with its own time limit and is heard no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._workers.stop()
        until = time.monotonic() + _STOP_SECONDS
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))
        if not self.threads:
            self._reader.close()

    # ------------------------------------------------------------ in the threads of the readings

    def _serve(self, line: Line, allowance: Allowance, named: frozenset[Key]) -> None:
        """Read one family once."""
        began, before = self._clock.now(), self._reader.spent(line.name)
        permanent = False
        part: Part[Any] | None
        try:
            reading = self._read(line.name, allowance, named)
            part = None if reading is None else part_of(reading)
            if reading is not None and line.name == "queues":
                self._coverage = self._reader.queues.coverage()
        except BrokerError as error:
            part, permanent = replace(line.part, error=str(error)), isinstance(error, NoStatistics)
        except Exception:
            # The boundary: a fault of ours in one family must not end it for good, nor the others.
            log.exception("cluster %s: reading %s failed by a fault of ackscope", self._cluster, line.name)
            part = replace(line.part, error="ackscope failed to read this; see its log")
        self._finish(line, part, began, before, permanent=permanent)

    def _read(self, family: str, allowance: Allowance, named: frozenset[Key]) -> Reading | None:
        return self._reader.step_queues(allowance, named) if family == "queues" else self._reader.read(family)

    def _finish(self, line: Line, part: Part[Any] | None, began: Instant, before: Spent, *, permanent: bool) -> None:
        ended, after = self._clock.now(), self._reader.spent(line.name)
        with self._changed:
            back = line.name == "overview" and line.part.error is not None and part is not None and part.error is None
            if part is None:
                line.pause(began, after)
            else:
                line.finish(part, began, ended, before, after)
                if permanent:
                    line.give_up()
            if back:
                # At once, and not with the next round.
                self._back = True
                for other in self._lines.values():
                    if other is not line:
                        other.hasten()
            # It was not there when its round was handed out: it is shown now, not with the next one.
            self._late = self._late or (part is not None and ended.since(began) > self._interval / 2)
            self._changed.notify_all()

    # ------------------------------------------------------------ the thread of the rounds

    def _pace(self) -> None:
        """One round after the other, until stopped."""
        while not self._stopping:
            began = self._clock.now()
            self._guarded(partial(self._round, began))
            while self._rest(began.mono + self._interval):
                self._guarded(self._hand_out)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            # The boundary: what a receiver does wrong with one snapshot must not end polling.
            log.exception("cluster %s: handing out a snapshot failed", self._cluster)

    def _rest(self, until: float) -> bool:
        """Wait for the next round; whether a reading came late before it."""
        with self._changed:
            left = until - self._clock.now().mono
            self._changed.wait_for(lambda: self._stopping or self._back or self._late, timeout=max(0.0, left))
            return self._late and not (self._stopping or self._back)

    def _round(self, began: Instant) -> None:
        """Start what is due, wait for it half an interval, and hand out what is there."""
        with self._changed:
            self._back = False
            self._plan(began)
            # Half an interval early is near enough: what is due just after a round need not wait for the next.
            started = self._start_due(began.mono + self._interval / 2)
            self._await(started)
        self._hand_out()

    def _hand_out(self) -> None:
        with self._changed:
            if self._stopping:
                return
            self._late = False
            parts = {family: line.told() for family, line in self._lines.items()}
            permanent = [family for family, line in self._lines.items() if line.permanent]
        snapshot = assemble(self._cluster, self._clock.now(), parts)
        self._latest = snapshot
        self._teller.tell(snapshot, permanent, self._reader.queues)
        self._on_snapshot(snapshot)

    def _plan(self, now: Instant) -> None:
        """Share the budget out anew, from what everything costs by now."""
        demands = {name: line.demand for name, line in self._lines.items()}
        queues = self._reader.queues
        demands["queues"] = replace(demands["queues"], cost=queues.full_cost)
        overview, nodes = (self._lines[name].part for name in ("overview", "nodes"))
        queues_every = self._lines["queues"].stats.interval or 0.0
        demands = self._allowed.plan(demands, overview, nodes, queues_every)
        self._reader.checks_good_for = self._allowed.checks_good_for
        granted = budget.shares(demands, self._allowed.share)
        for name, line in self._lines.items():
            line.stats = replace(line.stats, interval=line.measured(budget.interval(demands[name], granted[name])))
        share = granted["queues"]
        totals = budget.Demand(cost=queues.totals_cost, shortest=self._interval)
        every, left = budget.split(totals, share, self._allowed.totals) if share > 0 else (self._interval, 0.0)
        every = self._lines["queues"].measured(every)
        full_every = self._allowed.full_every
        self._allowance = Allowance(
            share=share,
            shortest=self._interval,
            totals_every=every,
            details_share=left,
            full_every=full_every,
            full_most=self._allowed.totals,
        )
        line = self._lines["queues"]
        if queues.mode is Mode.TOTALS:
            line.stats = replace(line.stats, interval=every)
        elif full_every and line.stats.interval and self._allowance.bears(queues.full_cost):
            enough = max(self._interval, full_every)
            line.stats = replace(line.stats, interval=min(line.stats.interval, enough))
        spent = sum(line.stats.cost_seconds for line in self._lines.values() if not line.demand.vital)
        self._meter.append((now.mono, spent))
        while len(self._meter) > 2 and now.mono - self._meter[1][0] >= _SPENT_OVER_SECONDS:
            self._meter.popleft()

    def _start_due(self, horizon: float) -> list[Line]:
        clients = (self._lines[name].part for name in ("channels", "consumers", "queues"))
        allowance, named = self._allowance, self._signs.named(*clients)
        # The totals have a rhythm of their own, and statistics their turns in between.
        steps = self._reader.queues.next_mode(allowance, self._reader.hints()) is Mode.TOTALS
        started = []
        for name, line in self._lines.items():
            period = self._interval if name == "queues" and steps else line.stats.interval
            if line.is_due(period or 0.0, horizon):
                line.start(period or 0.0)
                started.append(line)
                self._workers.submit(f"poll-{self._cluster}-{name}", partial(self._serve, line, allowance, named))
        return started

    def _await(self, started: list[Line]) -> None:
        """Until all have ended or half an interval is over; a reading that waits for a thread gets one."""
        until = time.monotonic() + self._interval / 2
        while not (self._stopping or self._back) and any(line.busy for line in started):
            left = until - time.monotonic()
            if left <= 0:
                return
            if not self._changed.wait(timeout=min(_RELIEF_SECONDS, left)):
                self._workers.relieve()

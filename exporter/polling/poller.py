"""Reads one cluster again and again, and keeps what was last good.

Every family has its own thread and connection and never more than one request under way: one that hangs starves no
other. A round starts what is due, waits a little, and hands out a snapshot of what is there.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Snapshot
from exporter.broker.families import FAMILIES
from exporter.broker.read import assemble
from exporter.broker.reader import Reader
from exporter.broker.settings import ManagementSettings

log = logging.getLogger(__name__)

_STRETCH = 5
"""A reading that took T starts again about 5 x T later: polling takes a fifth of the broker's time, not all of it."""

_STRETCH_FAILED = 2
"""The same after a failure: sooner, so that a broker that is back is soon seen."""

_STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PollStats:
    """What polling one family has cost so far.

    Attributes:
        attempts: readings begun and ended, good or not.
        failures: those that failed.
        last_seconds: how long the last one took; None before the first.
        bytes_total: bytes of all answers.
    """

    attempts: int = 0
    failures: int = 0
    last_seconds: float | None = None
    bytes_total: int = 0


@dataclass(slots=True)
class _Line:
    """The state of one family; every access holds the poller's lock."""

    part: Part[Any] = field(default_factory=Part)
    stats: PollStats = PollStats()
    busy: bool = False
    due: float = float("-inf")


class Poller:
    """Polls one cluster in the background.

    Args:
        cluster: its name in the configuration.
        management: how to reach it.
        interval: seconds from one round to the next.
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
        interval: float,
        clock: Clock,
        on_snapshot: Callable[[Snapshot], None],
    ) -> None:
        self._cluster = cluster
        self._interval = interval
        self._clock = clock
        self._on_snapshot = on_snapshot
        self._reader = Reader(management, clock, f"clusters.{cluster}.management")
        self._changed = threading.Condition()
        self._lines = {family: _Line() for family in FAMILIES}
        self._stopping = False
        self._latest = Snapshot(cluster=cluster, taken=clock.now())
        self._failing: dict[str, str] = {}
        self._version: str | None = None
        self._threads = [
            threading.Thread(target=self._serve, args=(family,), name=f"poll-{cluster}-{family}", daemon=True)
            for family in FAMILIES
        ]
        self._threads.append(threading.Thread(target=self._pace, name=f"poll-{cluster}", daemon=True))

    @property
    def latest(self) -> Snapshot:
        """The last snapshot; one of empty parts before the first round."""
        return self._latest

    @property
    def stats(self) -> Mapping[str, PollStats]:
        """Family name -> what it has cost so far."""
        with self._changed:
            return {family: line.stats for family, line in self._lines.items()}

    def start(self) -> None:
        """Begin; the first round starts at once."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End. A request that hangs ends with its own time limit and is heard no more."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        until = time.monotonic() + _STOP_SECONDS
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))
        if not any(thread.is_alive() for thread in self._threads):
            self._reader.close()

    # ------------------------------------------------------------ the threads of the families

    def _serve(self, family: str) -> None:
        """Read whenever a round says so, until stopped."""
        line = self._lines[family]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: line.busy or self._stopping)
                if self._stopping:
                    return
            began = self._clock.now()
            try:
                part = self._read(family)
            except Exception:
                # The boundary: a fault of ours in one family must not end it for good, nor the others.
                log.exception("cluster %s: reading %s failed by a fault of ackscope", self._cluster, family)
                part = replace(line.part, error="ackscope failed to read this; see its log")
            self._finish(line, part, began, self._reader.received(family))

    def _read(self, family: str) -> Part[Any]:
        try:
            reading = self._reader.read(family)
        except BrokerError as error:
            return replace(self._lines[family].part, error=str(error))
        return Part(value=reading.value, at=reading.at, seconds=reading.seconds, gaps=reading.gaps)

    def _finish(self, line: _Line, part: Part[Any], began: Instant, received: int) -> None:
        took = self._clock.now().since(began)
        with self._changed:
            line.part = part
            line.stats = PollStats(
                attempts=line.stats.attempts + 1,
                failures=line.stats.failures + (part.error is not None),
                last_seconds=took,
                bytes_total=received,
            )
            line.due = began.mono + took * (_STRETCH if part.error is None else _STRETCH_FAILED)
            line.busy = False
            self._changed.notify_all()

    # ------------------------------------------------------------ the thread of the rounds

    def _pace(self) -> None:
        """One round after the other, until stopped."""
        while True:
            began = self._clock.now()
            try:
                self._round(began)
            except Exception:
                # The boundary: what a receiver does wrong with one snapshot must not end polling.
                log.exception("cluster %s: handing out a snapshot failed", self._cluster)
            with self._changed:
                rest = self._interval - self._clock.now().since(began)
                if self._changed.wait_for(lambda: self._stopping, timeout=max(0.0, rest)):
                    return

    def _round(self, began: Instant) -> None:
        """Start what is due, wait for it half an interval, and hand out what is there."""
        with self._changed:
            # Half an interval early is near enough: what is due just after a round need not wait for the next.
            horizon = began.mono + self._interval / 2
            started = [line for line in self._lines.values() if not line.busy and line.due <= horizon]
            for line in started:
                line.busy = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._stopping or not any(line.busy for line in started), timeout=self._interval / 2
            )
            if self._stopping:
                return
            parts = {family: line.part for family, line in self._lines.items()}
        snapshot = assemble(self._cluster, self._clock.now(), parts)
        self._latest = snapshot
        self._tell(snapshot)
        self._on_snapshot(snapshot)

    def _tell(self, snapshot: Snapshot) -> None:
        """Log what changed since the round before, and nothing that did not."""
        failing = {family: part.error for family, part in snapshot.parts.items() if part.error is not None}
        before, self._failing = self._failing, failing
        away, was_away = len(failing) == len(FAMILIES), len(before) == len(FAMILIES)
        version = snapshot.overview.value.rabbitmq_version if snapshot.overview.value else None
        if away and not was_away:
            log.warning("cluster %s: away: %s", self._cluster, failing["overview"])
        elif was_away and not away:
            log.info("cluster %s: back", self._cluster)
        if not away:
            for family in failing.keys() - (set() if was_away else before.keys()):
                log.warning("cluster %s: %s cannot be read: %s", self._cluster, family, failing[family])
            for family in set() if was_away else before.keys() - failing.keys():
                log.info("cluster %s: %s can be read again", self._cluster, family)
        if version is not None and version != self._version:
            log.info("cluster %s: RabbitMQ %s", self._cluster, version)
            self._version = version

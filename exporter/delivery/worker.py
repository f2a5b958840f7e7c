"""The thread of one receiver: it sends what is due, waits while the receiver is away, and stores what was delivered."""

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ackscope.clock import Clock, Instant
from ackscope.findings import DiagnosisResult, FindingKey
from ackscope.log import get_logger
from ackscope.triage import Triage
from exporter.delivery.incidents import FindingIncident, IncidentRecord
from exporter.delivery.messages import ClusterOf, batches, brief_of, compose
from exporter.delivery.receivers.contract import DeliveryError, Receiver
from exporter.delivery.record_file import encode_record, write_record

log = get_logger(__name__)

_TICK = 15.0
"""Quiet hours and reminders are looked at as often as this, in seconds."""
_STOP_SECONDS = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two attempts while a receiver is away: doubled each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStats:
    """Figures of one receiver.

    Attributes:
        sent: messages accepted since startup.
        failed: attempts that were not.
        waiting: findings that the receiver does not know in their present state.
        dropped: findings that were not recorded, or forgotten, because there were too many.
        last_success: when it last accepted something; None before.
    """

    sent: int = 0
    failed: int = 0
    waiting: int = 0
    dropped: int = 0
    last_success: Instant | None = None


class DeliveryWorker:
    """Delivers to one receiver.

    Args:
        name: its name in the settings.
        receiver: the destination.
        record: what it knows.
        path: where the record is stored; None: nowhere.
        address: what identifies the destination.
        cluster_of: what templates name of a cluster.
        external_url: address of the exporter, for links.
        clock: gives the times.
    """

    def __init__(
        self,
        name: str,
        receiver: Receiver,
        record: IncidentRecord,
        *,
        path: Path | None,
        address: str,
        cluster_of: ClusterOf,
        external_url: str | None,
        clock: Clock,
    ) -> None:
        self.name, self._receiver, self.record, self._path, self.address = name, receiver, record, path, address
        self._cluster_of, self._external_url, self._clock = cluster_of, external_url, clock
        self._lock = record.lock
        self._sent = self._failed = 0
        self._last_success: Instant | None = None
        self._retry_at = self._refresh_at = float("-inf")
        self._pause, self._problem, self._stored = 0.0, "", b""
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"deliver-{name}", daemon=True)

    def start(self) -> None:
        """Start delivering."""
        self._thread.start()

    def end(self) -> None:
        """Send nothing after the message in progress."""
        self._ending.set()
        self._wake.set()

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Wait up to `seconds` for the message in progress, and store the record."""
        self.end()
        if self._thread.is_alive():
            self._thread.join(seconds)
        self._store()

    def observe(self, result: DiagnosisResult, triage: Mapping[FindingKey, Triage]) -> None:
        """Record the diagnosis of a cluster."""
        with self._lock:
            changed = self.record.observe(result, triage, self._clock.now())
        if changed:
            self._wake.set()

    def keep_clusters(self, clusters: Collection[str]) -> None:
        """End the findings of other clusters."""
        with self._lock:
            self.record.keep_clusters(clusters, self._clock.now())
        self._wake.set()

    def stats(self) -> DeliveryStats:
        """Figures for metrics."""
        with self._lock:
            waiting, dropped = self.record.waiting(self._clock.now()), self.record.dropped
        return DeliveryStats(
            sent=self._sent, failed=self._failed, waiting=waiting, dropped=dropped, last_success=self._last_success
        )

    def step(self) -> float:
        """Send what is due. Returns the seconds until the next look."""
        now = self._clock.now()
        if now.mono >= self._retry_at:
            try:
                failure = self._send_due(now) or self._keep_alive(now)
            except Exception:  # Boundary: a defect in one receiver must not end its thread.
                log.exception("delivery failed because of a bug; it is tried again", receiver=self.name)
                self._failed += 1
                failure = DeliveryError("a bug of ackscope; see the log")
            self._settle(failure)
        self._store()
        now, next_at = self._clock.now(), self._retry_at
        if self._receiver.refresh is not None:
            next_at = max(next_at, self._refresh_at)
        return min(_TICK, max(0.05, next_at - now.mono)) if next_at > now.mono else _TICK

    def _send_due(self, now: Instant) -> DeliveryError | None:
        """Send the messages that are due, until the receiver is away. Returns the last problem."""
        with self._lock:
            due = self.record.due(now)
        failure = None
        for events in batches(due):
            if self._ending.is_set():
                break
            message = compose(self.name, events, self._cluster_of, now, self._external_url)
            try:
                self._receiver.deliver(message)
            except DeliveryError as error:
                self._failed += 1
                failure = error
                if not error.rejected:
                    break
                continue
            self._sent += 1
            self._last_success = self._clock.now()
            with self._lock:
                self.record.commit(message.events, self._clock.now())
        return failure

    def _keep_alive(self, now: Instant) -> DeliveryError | None:
        if self._receiver.refresh is None or now.mono < self._refresh_at:
            return None
        with self._lock:
            active = self.record.active()
        fresh = [self._fresh(it) for it in active]
        try:
            self._receiver.keep_alive(fresh, now.wall)
        except DeliveryError as error:
            self._failed += 1
            return error
        self._last_success = self._clock.now()
        self._refresh_at = self._last_success.mono + self._receiver.refresh
        return None

    def _fresh(self, incident: FindingIncident) -> FindingIncident:
        return replace(incident, brief=brief_of(incident, self._cluster_of(incident.key.cluster)))

    def _settle(self, failure: DeliveryError | None) -> None:
        """Plan the next attempt, and log a problem when it appears and when it is over."""
        if failure is None:
            if self._problem:
                log.info("receiver accepts messages again", receiver=self.name)
            self._pause, self._problem, self._retry_at = 0.0, "", float("-inf")
            return
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * self._pause))
        self._retry_at = self._clock.now().mono + max(self._pause, failure.retry_after or 0.0)
        if str(failure) != self._problem:
            self._problem = str(failure)
            log.warning("not delivered, findings wait", receiver=self.name, error=self._problem)

    def _store(self) -> None:
        if self._path is None:
            return
        with self._lock:
            self.record.render(lambda it: brief_of(it, self._cluster_of(it.key.cluster)))
            content = encode_record(self.address, self.record.all(), self._receiver.memory())
        if content == self._stored:
            return
        try:
            write_record(self._path, content)
        except OSError as error:
            log.warning(
                "deliveries not stored; a restart would repeat them", file=str(self._path), error=error.strerror
            )
            return
        self._stored = content

    def _run(self) -> None:
        while not self._ending.is_set():
            self._wake.clear()
            self._wake.wait(self.step())

"""Latest state of every cluster, in memory: written by poller and probe threads, read by every scrape.

Values are immutable and replaced as a whole, so a reader never sees a partial update.
"""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, FindingKey
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from diagnosis.finding_changes import EndedFinding, finding_changes, recently_ended
from diagnosis.queue_age import QueueAge, QueueKey
from diagnosis.window import Window
from exporter.runtime.window_limits import limit_window


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOutcome:
    """Latest summary of a probe stream, and its time of arrival."""

    at: Instant
    outcome: ProbeOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """State of one cluster.

    Attributes:
        window: recent snapshots. Scrapes and the API show the latest.
        verdict: latest diagnosis; None before the first.
        open_findings: findings by key; one stays open while its rule is inconclusive.
        ended: findings that ended recently, the latest first.
        diagnosis_seconds: duration of that diagnosis.
        diagnosis_errors: how often diagnosis raised, which is a bug of ackscope.
        readings_dropped: number of older readings of single queues that were dropped to bound memory
            (`exporter.runtime.window_limits`).
        queue_ages: (virtual host, name) -> age of the queue at the latest reading.
        outcomes: (probe, stream, queue) -> latest summary; the node instead of the queue if there is none.
    """

    window: Window
    verdict: DiagnosisResult | None = None
    open_findings: Mapping[FindingKey, Finding] = field(default_factory=dict)
    ended: tuple[EndedFinding, ...] = ()
    diagnosis_seconds: float | None = None
    diagnosis_errors: int = 0
    readings_dropped: int = 0
    queue_ages: Mapping[QueueKey, QueueAge] = field(default_factory=dict)
    outcomes: dict[tuple[str, str, str], ReceivedOutcome] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot | None:
        """Latest snapshot; None before the first poll has finished."""
        return self.window.latest

    def latest_only(self) -> "ClusterState":
        """Return a copy with only the latest snapshot, which uses less memory than the window."""
        return replace(self, window=Window(self.window.cluster, self.window.snapshots[-1:]))

    def latest_outcomes(self, now: Instant) -> list[ProbeOutcome]:
        """Return the latest summary of every stream, in a fixed order.

        Its time is that of its arrival, by the wall clock of now: a summary does not become fresh if the clock is set.
        """
        seen = (self.outcomes[key] for key in sorted(self.outcomes))
        return [replace(it.outcome, at=it.at.shifted(now.wall_clock_step(it.at)).wall) for it in seen]


class StateStore:
    """State by cluster name, in the order of the configuration.

    Data of clusters that are no longer configured is dropped.
    """

    def __init__(self, clusters: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._clusters = {name: ClusterState(window=Window.empty(name)) for name in clusters}
        self._generation = 0

    @property
    def generation(self) -> int:
        """Number that changes with every snapshot. Data derived only from snapshots is valid until it changes."""
        return self._generation

    def clusters(self) -> dict[str, ClusterState]:
        """Return the current state of every cluster."""
        with self._lock:
            return dict(self._clusters)

    def snapshots(self) -> list[Snapshot]:
        """Return the latest snapshot of every cluster that has one."""
        states = self.clusters().values()
        return [state.snapshot for state in states if state.snapshot is not None]

    def set_clusters(self, clusters: Iterable[str], reset: Collection[str] = ()) -> None:
        """Replace the list of clusters. State of clusters that stay is kept.

        Args:
            clusters: names, in order.
            reset: names whose broker has changed; their state is discarded.
        """
        with self._lock:
            self._clusters = {
                name: ClusterState(window=Window.empty(name))
                if name in reset or name not in self._clusters
                else self._clusters[name]
                for name in clusters
            }
            self._generation += 1

    def put_snapshot(self, snapshot: Snapshot) -> ClusterState | None:
        """Add a snapshot. Returns the updated state; None if the cluster is no longer configured."""
        before = self._clusters.get(snapshot.cluster)
        if before is None:
            return None
        # Not under the lock, as it compares thousands of queues. Each cluster has one poller, so no update is lost.
        window, dropped = limit_window(before.window.add(snapshot))
        with self._lock:
            now = self._clusters.get(snapshot.cluster)
            if now is None or now.window is not before.window:
                return None
            after = self._change(snapshot.cluster, window=window, readings_dropped=now.readings_dropped + dropped)
            self._generation += 1
            return after

    def put_past(self, past: Sequence[Snapshot]) -> None:
        """Add snapshots of one cluster from before its first reading of queues; ignored if it has one."""
        if not past or (before := self._clusters.get(past[0].cluster)) is None or before.window.readings("queues"):
            return
        window = Window.empty(past[0].cluster)
        for snapshot in (*past, *before.window.snapshots):
            window = window.add(snapshot)
        with self._lock:
            now = self._clusters.get(past[0].cluster)
            if now is not None and now.window is before.window:
                self._change(past[0].cluster, window=window)

    def put_queue_ages(self, cluster: str, ages: Mapping[QueueKey, QueueAge]) -> None:
        """Store the age of every queue, derived from the latest snapshot."""
        with self._lock:
            self._change(cluster, queue_ages=ages)
            self._generation += 1

    def put_verdict(self, verdict: DiagnosisResult, seconds: float, at: Instant) -> None:
        """Store a diagnosis, its duration in seconds, and what ended by it at `at`."""
        with self._lock:
            if (before := self._clusters.get(verdict.cluster)) is not None:
                changes = finding_changes(before.open_findings, verdict)
                self._change(
                    verdict.cluster,
                    verdict=verdict,
                    diagnosis_seconds=seconds,
                    open_findings=changes.open,
                    ended=recently_ended(before.ended, changes, verdict, at),
                )

    def count_diagnosis_error(self, cluster: str) -> None:
        """Count a failure of diagnosis; the previous result stays."""
        with self._lock:
            if (before := self._clusters.get(cluster)) is not None:
                self._change(cluster, diagnosis_errors=before.diagnosis_errors + 1)

    def put_outcomes(self, cluster: str, outcomes: Iterable[ProbeOutcome], at: Instant) -> None:
        """Store probe summaries."""
        with self._lock:
            if (before := self._clusters.get(cluster)) is not None:
                seen = {
                    (it.probe, it.stream, it.queue or it.node): ReceivedOutcome(at=at, outcome=it) for it in outcomes
                }
                self._change(cluster, outcomes={**before.outcomes, **seen})

    def _change(self, cluster: str, **changes: Any) -> ClusterState | None:
        """Replace the state of a cluster by a changed copy. The caller holds the lock."""
        if cluster not in self._clusters:
            return None
        after = self._clusters[cluster] = replace(self._clusters[cluster], **changes)
        return after

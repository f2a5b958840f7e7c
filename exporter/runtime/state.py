"""What the exporter knows now, in memory: written by poller and probe threads, read by every scrape.

Values are immutable and swapped whole, so a reader never sees half of one.
"""

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from diagnosis.window import Window
from exporter.runtime.window_limits import limit_window


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedOutcome:
    """A probe stream's latest summary, and when it reached us."""

    at: Instant
    outcome: ProbeOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """All that is known of one cluster.

    Attributes:
        window: recent snapshots; its latest is what scrapes and the API show.
        verdict: the latest answer of diagnosis; None before the first.
        diagnosis_seconds: how long that took.
        diagnosis_errors: times that diagnosis raised; a defect of ours.
        readings_dropped: older readings of single queues that were let go (`exporter.runtime.window_limits`).
        outcomes: probe, stream, and its queue (or node, without one) -> latest summary.
    """

    window: Window
    verdict: DiagnosisResult | None = None
    diagnosis_seconds: float | None = None
    diagnosis_errors: int = 0
    readings_dropped: int = 0
    outcomes: dict[tuple[str, str, str], ReceivedOutcome] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot; None before the first poll ended."""
        return self.window.latest

    def latest_only(self) -> "ClusterState":
        """The same with nothing but the latest snapshot, for who holds on to it."""
        return replace(self, window=replace(self.window, snapshots=self.window.snapshots[-1:], trail=()))

    def latest_outcomes(self) -> list[ProbeOutcome]:
        """Every stream's latest summary, in a fixed order."""
        return [self.outcomes[key].outcome for key in sorted(self.outcomes)]


class StateStore:
    """The clusters' states by name, in the order of the configuration.

    What arrives late of a cluster that is no longer watched is dropped.
    """

    def __init__(self, clusters: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._clusters = {name: ClusterState(window=Window.empty(name)) for name in clusters}
        self._generation = 0

    @property
    def generation(self) -> int:
        """Grows with every snapshot: what is made from snapshots alone is good until it changes."""
        return self._generation

    def clusters(self) -> dict[str, ClusterState]:
        """Every cluster's state at this moment."""
        with self._lock:
            return dict(self._clusters)

    def snapshots(self) -> list[Snapshot]:
        """The latest snapshot of every cluster that has one."""
        states = self.clusters().values()
        return [state.snapshot for state in states if state.snapshot is not None]

    def set_clusters(self, clusters: Iterable[str], reset: Collection[str] = ()) -> None:
        """From now on there are these clusters, in this order: what is known of those that stay is kept.

        Args:
            clusters: names.
            anew: those of them that are another broker by now, of which nothing is known yet.
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
        """Take in one poll's result; returns the cluster's state with it, None where it is no longer watched."""
        before = self._clusters.get(snapshot.cluster)
        if before is None:
            return None
        # Outside the lock, for it compares thousands of queues; a cluster has one poller, so no addition is lost.
        window, dropped = limit_window(before.window.add(snapshot))
        with self._lock:
            now = self._clusters.get(snapshot.cluster)
            if now is None or now.window is not before.window:
                return None
            after = self._change(snapshot.cluster, window=window, readings_dropped=now.readings_dropped + dropped)
            self._generation += 1
            return after

    def put_verdict(self, verdict: DiagnosisResult, seconds: float) -> None:
        """Take in what diagnosis answered, and how long it took."""
        with self._lock:
            self._change(verdict.cluster, verdict=verdict, diagnosis_seconds=seconds)

    def count_diagnosis_error(self, cluster: str) -> None:
        """Count one defect of diagnosis; the verdict before it stays."""
        with self._lock:
            if (before := self._clusters.get(cluster)) is not None:
                self._change(cluster, diagnosis_errors=before.diagnosis_errors + 1)

    def put_outcomes(self, cluster: str, outcomes: Iterable[ProbeOutcome], at: Instant) -> None:
        """Take in probe summaries."""
        with self._lock:
            if (before := self._clusters.get(cluster)) is not None:
                seen = {
                    (it.probe, it.stream, it.queue or it.node): ReceivedOutcome(at=at, outcome=it) for it in outcomes
                }
                self._change(cluster, outcomes={**before.outcomes, **seen})

    def _change(self, cluster: str, **changes: Any) -> ClusterState | None:
        """Swap a cluster's state for one with changes; the lock is held."""
        if cluster not in self._clusters:
            return None
        after = self._clusters[cluster] = replace(self._clusters[cluster], **changes)
        return after

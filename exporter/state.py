"""What the exporter knows now, in memory: written by poller and probe threads, read by every scrape.

Values are immutable and swapped whole, so a reader never sees half of one.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ackscope.clock import Instant
from ackscope.findings import Verdict
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from diagnosis.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenOutcome:
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
        outcomes: probe, stream, and its queue (or node, without one) -> latest summary.
    """

    window: Window
    verdict: Verdict | None = None
    diagnosis_seconds: float | None = None
    diagnosis_errors: int = 0
    outcomes: dict[tuple[str, str, str], SeenOutcome] = field(default_factory=dict)

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest snapshot; None before the first poll ended."""
        return self.window.latest

    def latest_outcomes(self) -> list[ProbeOutcome]:
        """Every stream's latest summary, in a fixed order."""
        return [self.outcomes[key].outcome for key in sorted(self.outcomes)]


class State:
    """The clusters' states by name, in the order of the configuration."""

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

    def put_snapshot(self, snapshot: Snapshot) -> ClusterState:
        """Take in one poll's result; returns the cluster's state with it."""
        # Outside the lock, for it compares thousands of queues; a cluster has one poller, so no addition is lost.
        window = self._clusters[snapshot.cluster].window.add(snapshot)
        with self._lock:
            after = replace(self._clusters[snapshot.cluster], window=window)
            self._clusters[snapshot.cluster] = after
            self._generation += 1
            return after

    def put_verdict(self, verdict: Verdict, seconds: float) -> None:
        """Take in what diagnosis answered, and how long it took."""
        with self._lock:
            before = self._clusters[verdict.cluster]
            self._clusters[verdict.cluster] = replace(before, verdict=verdict, diagnosis_seconds=seconds)

    def count_diagnosis_error(self, cluster: str) -> None:
        """Count one defect of diagnosis; the verdict before it stays."""
        with self._lock:
            before = self._clusters[cluster]
            self._clusters[cluster] = replace(before, diagnosis_errors=before.diagnosis_errors + 1)

    def put_outcomes(self, cluster: str, outcomes: Iterable[ProbeOutcome], at: Instant) -> None:
        """Take in probe summaries."""
        with self._lock:
            before = self._clusters[cluster]
            seen = {(it.probe, it.stream, it.queue or it.node): SeenOutcome(at=at, outcome=it) for it in outcomes}
            self._clusters[cluster] = replace(before, outcomes={**before.outcomes, **seen})

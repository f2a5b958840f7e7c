"""Ingest: turns each snapshot and each batch of probe records into state, diagnosis, metrics and landing rows."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ackscope.baselines import Baselines
from ackscope.clock import Clock
from ackscope.log import get_logger
from ackscope.snapshot import Snapshot
from diagnosis.engine import diagnose
from diagnosis.queue_age import QueueAges
from exporter.probes_host.metrics import ProbeMetrics
from exporter.probes_host.nodes import QueueNodes, assign_nodes, assign_outcome_nodes, probe_nodes
from exporter.runtime.state import ClusterState, StateStore
from exporter.settings import ExporterSettings
from probes.catalogue import PROBES
from probes.ipc import RecordBatch

if TYPE_CHECKING:
    from exporter.landing.sink import LandingSink

log = get_logger(__name__)


class Ingest:
    """Processes what pollers and probes deliver.

    The snapshots of a cluster come from one thread, probe batches from another.

    Args:
        settings: cardinality limits, prefixes and thresholds.
        state: what scrapes and the API read.
        probe_metrics: histograms and counters of the probes.
        landing: landing files for the pipeline; None if disabled.
        clock: gives timestamps and measures the duration of diagnosis.
        baselines: cluster name -> baselines of the current hour, None if unknown.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        state: StateStore,
        probe_metrics: ProbeMetrics,
        landing: "LandingSink | None",
        clock: Clock,
        baselines: Callable[[str], Baselines | None] = lambda _: None,
    ) -> None:
        self._baselines = baselines
        self._state, self._probe_metrics, self._landing, self._clock = state, probe_metrics, landing, clock
        self._nodes: dict[str, QueueNodes] = {}
        self._capped: set[str] = set()
        self._queue_ages: dict[str, QueueAges] = {}
        self.apply(settings)

    def apply(self, settings: ExporterSettings) -> None:
        """Apply new settings. State of clusters that were removed is dropped."""
        self._prefix, self._limits = settings.probes.prefix, settings.metrics.limits
        self._thresholds = settings.thresholds
        on_nodes = [name for name, probe in PROBES.items() if probe.on_nodes]
        self._addressed = {
            name: on_nodes if cluster.amqp is not None and cluster.amqp.nodes else ()
            for name, cluster in settings.clusters.items()
        }
        for name in self._nodes.keys() - settings.clusters.keys():
            del self._nodes[name]
            self._queue_ages.pop(name, None)
        if self._landing is not None:
            self._landing.apply(settings.landing, self._thresholds.own_prefixes, settings.clusters)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Ingest one snapshot."""
        known = self._state.put_snapshot(snapshot)
        if known is None:  # a late snapshot of a removed cluster
            return
        addressed = self._addressed.get(snapshot.cluster, ())
        self._nodes[snapshot.cluster] = probe_nodes(snapshot, self._prefix, addressed)
        self._age(snapshot.cluster, known)
        self._diagnose(snapshot.cluster, known)
        self._land(snapshot)
        queues = len(snapshot.queues.value or ())
        if queues > self._limits.queues and snapshot.cluster not in self._capped:
            self._capped.add(snapshot.cluster)
            log.warning(
                "queues beyond metrics.max_queues have no series of their own",
                cluster=snapshot.cluster,
                count=queues,
                limit=self._limits.queues,
            )

    def on_batch(self, batch: RecordBatch) -> None:
        """Ingest the records of one output line of the probe process."""
        if batch.cluster not in self._addressed:  # a late batch of a removed cluster
            return
        nodes = self._nodes.get(batch.cluster, {})
        messages = assign_nodes(batch.messages, nodes, self._prefix)
        bursts = assign_nodes(batch.bursts, nodes, self._prefix)
        steps = assign_nodes(batch.steps, nodes, self._prefix)
        outcomes = assign_outcome_nodes(batch.outcomes, nodes)
        self._probe_metrics.messages(batch.cluster, messages)
        self._probe_metrics.bursts(batch.cluster, bursts)
        self._probe_metrics.steps(batch.cluster, steps)
        self._probe_metrics.outcomes(batch.cluster, outcomes)
        self._state.put_outcomes(batch.cluster, outcomes, self._clock.now())
        if self._landing is not None:
            self._landing.records(batch.cluster, messages, bursts, steps)

    def _age(self, cluster: str, known: ClusterState) -> None:
        """Follow the flow of every queue. A window with one snapshot is that of a new or replaced broker."""
        latest = known.snapshot
        if latest is None:
            return
        is_new = len(known.window.snapshots) == 1 or cluster not in self._queue_ages
        if is_new:
            self._queue_ages[cluster] = QueueAges()
        try:
            for past in known.window.snapshots[:-1] if is_new else ():
                self._queue_ages[cluster].add(past)
            ages = self._queue_ages[cluster].add(latest)
        except Exception:  # Boundary: as in `_diagnose`.
            log.exception("the age of queues is unknown until the next poll", cluster=cluster)
            ages, self._queue_ages[cluster] = {}, QueueAges()
        self._state.put_queue_ages(cluster, ages)

    def _diagnose(self, cluster: str, known: ClusterState) -> None:
        started = self._clock.now()
        try:
            verdict = diagnose(
                known.window,
                known.latest_outcomes(started),
                started,
                self._thresholds,
                known.verdict,
                baselines=self._baselines(cluster),
            )
        except Exception:  # Boundary: a defect in a rule must not stop polling.
            log.exception("diagnosis failed; the previous result stays", cluster=cluster)
            self._state.count_diagnosis_error(cluster)
            return
        self._state.put_verdict(verdict, self._clock.now().since(started), started)

    def _land(self, snapshot: Snapshot) -> None:
        """Land the new rows of a snapshot and of its diagnosis."""
        known = self._state.clusters().get(snapshot.cluster)
        if self._landing is not None and known is not None:
            self._landing.snapshot(snapshot, known.snapshot or snapshot, known.verdict)

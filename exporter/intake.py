"""What happens to each snapshot and to each batch of probe records: state, diagnosis, metrics, landing rows."""

import logging

from ackscope.clock import Clock, Instant
from ackscope.snapshot import Snapshot
from ackscope.tables import ACK_BURSTS, PROBE_MESSAGES, PROBE_STEPS, QUEUE_SAMPLES
from diagnosis.engine import diagnose
from exporter.landing.rows import burst_rows, message_rows, queue_rows, step_rows
from exporter.landing.writer import LandingWriter
from exporter.placement import Nodes, place_outcomes, place_records, probe_nodes
from exporter.probe_metrics import ProbeMetrics
from exporter.settings import ExporterSettings
from exporter.state import ClusterState, State
from probes.settings import NODE_NAMES
from probes.wire import Batch

log = logging.getLogger(__name__)


class Intake:
    """Takes in what pollers and probes bring; each cluster's snapshots come from one thread, batches from another.

    Args:
        settings: caps, prefixes and thresholds.
        state: what scrapes and the API read.
        probe_metrics: histograms and counters of the probes.
        landing: files for the pipeline; None where nothing is landed.
        clock: says when, and times diagnosis.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        state: State,
        probe_metrics: ProbeMetrics,
        landing: LandingWriter | None,
        clock: Clock,
    ) -> None:
        self._prefix, self._limits = settings.probes.prefix, settings.metrics.limits
        self._thresholds = settings.thresholds
        self._state, self._probe_metrics, self._landing, self._clock = state, probe_metrics, landing, clock
        self._addressed = {
            name: NODE_NAMES if cluster.amqp is not None and cluster.amqp.nodes else ()
            for name, cluster in settings.clusters.items()
        }
        self._nodes: dict[str, Nodes] = {}
        self._landed: dict[str, Instant] = {}
        self._capped: set[str] = set()

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Take in one poll's result."""
        known = self._state.put_snapshot(snapshot)
        self._nodes[snapshot.cluster] = probe_nodes(snapshot, self._prefix, self._addressed[snapshot.cluster])
        self._diagnose(snapshot.cluster, known)
        self._land(snapshot)
        queues = len(snapshot.queues.value or ())
        if queues > self._limits.queues and snapshot.cluster not in self._capped:
            self._capped.add(snapshot.cluster)
            log.warning(
                "cluster %s has %d queues; %d get series of their own, those with most messages "
                "(raise metrics.max_queues for more; ackscope_dropped_series counts the others)",
                snapshot.cluster,
                queues,
                self._limits.queues,
            )

    def on_batch(self, batch: Batch) -> None:
        """Take in what one line of the probe process held."""
        nodes = self._nodes.get(batch.cluster, {})
        messages = place_records(batch.messages, nodes, self._prefix)
        bursts = place_records(batch.bursts, nodes, self._prefix)
        steps = place_records(batch.steps, nodes, self._prefix)
        outcomes = place_outcomes(batch.outcomes, nodes)
        self._probe_metrics.messages(batch.cluster, messages)
        self._probe_metrics.bursts(batch.cluster, bursts)
        self._probe_metrics.steps(batch.cluster, steps)
        self._probe_metrics.outcomes(batch.cluster, outcomes)
        self._state.put_outcomes(batch.cluster, outcomes, self._clock.now())
        if self._landing is not None:
            self._landing.add(PROBE_MESSAGES, message_rows(batch.cluster, messages))
            self._landing.add(ACK_BURSTS, burst_rows(batch.cluster, bursts))
            self._landing.add(PROBE_STEPS, step_rows(batch.cluster, steps))

    def _diagnose(self, cluster: str, known: ClusterState) -> None:
        started = self._clock.now()
        try:
            verdict = diagnose(known.window, known.latest_outcomes(), started, self._thresholds, known.verdict)
        except Exception:  # The boundary: a defect of a rule must not end the polling.
            log.exception("diagnosis of cluster %s failed; the verdict before stays", cluster)
            self._state.count_diagnosis_error(cluster)
            return
        self._state.put_verdict(verdict, self._clock.now().since(started))

    def _land(self, snapshot: Snapshot) -> None:
        """Land one sample of each queue, when they were really read again."""
        at = snapshot.queues.at
        if self._landing is None or at is None or self._landed.get(snapshot.cluster) == at:
            return
        self._landed[snapshot.cluster] = at
        self._landing.add(QUEUE_SAMPLES, queue_rows(snapshot, self._thresholds.own_prefixes))

"""Metrics of the latency breakdown of confirms, and of how the broker batches disk writes."""

from collections.abc import Mapping

from prometheus_client.core import Metric

from ackscope.clock import Instant
from ackscope.records import Batching, BatchingKind
from exporter.exposition.live.outcomes import current_outcomes, stream_labels
from exporter.exposition.specs import MetricFamilies, gauge
from exporter.probes_host.latency_breakdown import confirm_layers
from exporter.runtime.state import ClusterState

_STREAM = ("cluster", "probe", "stream", "node")

LAYER = gauge(
    "ackscope_confirm_layer_seconds",
    "Part of the confirm latency spent in a layer (network+channel, queue, persist, store, replicate, "
    "stream): difference between the medians of two streams over the last minute; no sample while it "
    "cannot be determined, /api/v1/probes says why.",
    "probes, layers",
    "cluster",
    "layer",
    "node",
)
BATCHING = gauge(
    "ackscope_confirm_batching",
    "1 for the batching pattern of the acks in the last minute (kind: sync, unbatched, window-limited, "
    "unknown); /api/v1/probes has the reasoning.",
    "probes, batching",
    *_STREAM,
    "kind",
)
CONFIDENCE = gauge(
    "ackscope_confirm_batching_confidence_ratio",
    "Confidence in the batching pattern, 0 to 1.",
    "probes, batching",
    *_STREAM,
)
INTERVAL = gauge(
    "ackscope_confirm_sync_interval_seconds",
    "Estimated duration of one disk write before acks (write: fsync if this broker calls fsync before it "
    "confirms, else flush); only while acks come in such batches. If it is much larger than the disk's "
    "own latency, see iostat -x on the node.",
    "probes, batching",
    *_STREAM,
    "write",
)

SPECS = (LAYER, BATCHING, CONFIDENCE, INTERVAL)


def collect(states: Mapping[str, ClusterState], now: Instant) -> list[Metric]:
    """Metric families of all clusters at `now`; stale summaries are left out."""
    families = MetricFamilies(SPECS)
    for cluster, state in states.items():
        outcomes = current_outcomes(state, now)
        for layer in confirm_layers(outcomes):
            families.add(LAYER, {"cluster": cluster, "layer": layer.name, "node": layer.node}, layer.seconds)
        for outcome in outcomes:
            if outcome.batching is not None:
                _batching(families, stream_labels(cluster, outcome), outcome.batching)
    return families.result()


def _batching(families: MetricFamilies, labels: dict[str, str], batching: Batching) -> None:
    for kind in BatchingKind:
        families.add(BATCHING, {**labels, "kind": kind.value}, int(batching.kind is kind))
    families.add(CONFIDENCE, labels, batching.confidence)
    if batching.kind is BatchingKind.SYNC:
        write = "fsync" if batching.fsync else "flush"
        families.add(INTERVAL, {**labels, "write": write}, batching.interval)

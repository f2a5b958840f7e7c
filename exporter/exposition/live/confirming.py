"""Where the time of a confirm goes: layer by layer, and how the broker batches what it writes."""

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
    "Time of a confirm by what it is spent in (network+channel, queue, persist, store, replicate, stream): medians of "
    "two streams apart, of the last minute; absent while it cannot be told, /api/v1/probes says why.",
    "probes, layers",
    "cluster",
    "layer",
    "node",
)
BATCHING = gauge(
    "ackscope_confirm_batching",
    "1 for what the acks of the last minute look like (kind: sync, unbatched, window-limited, unknown); /api/v1/probes "
    "says how that follows.",
    "probes, batching",
    *_STREAM,
    "kind",
)
CONFIDENCE = gauge(
    "ackscope_confirm_batching_confidence_ratio",
    "How sure that is, 0 to 1.",
    "probes, batching",
    *_STREAM,
)
INTERVAL = gauge(
    "ackscope_confirm_sync_interval_seconds",
    "Estimate of the time of one write before acks (write: fsync where this broker calls fsync before it confirms, "
    "else flush); only while acks come in such batches. Much larger than the disk's own: see iostat -x on the node.",
    "probes, batching",
    *_STREAM,
    "write",
)

SPECS = (LAYER, BATCHING, CONFIDENCE, INTERVAL)


def collect(states: Mapping[str, ClusterState], now: Instant) -> list[Metric]:
    """Families of all clusters, at `now`; summaries that have grown old take no part."""
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

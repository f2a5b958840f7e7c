"""Queue metrics with the names of `/metrics/detailed` of the official plugin, for the dashboard of the operator."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import OTHER, Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.compat.collect import value_at
from exporter.exposition.specs import MetricFamilies, gauge

_LABELS = ("cluster", "vhost", "queue")

_METRICS = tuple(
    (
        gauge(
            f"rabbitmq_detailed_queue_{name}",
            f"{words}: rabbitmq_queue_{name} under the name of /metrics/detailed, if metrics.detailed is set.",
            f"/api/queues {field}",
            *_LABELS,
        ),
        path,
    )
    for name, words, field, path in (
        ("messages", "Messages, ready and unacknowledged", "messages", "messages"),
        ("messages_ready", "Messages ready to be delivered", "messages_ready", "messages_ready"),
        ("messages_unacked", "Unacknowledged messages", "messages_unacknowledged", "messages_unacked"),
        ("consumers", "Consumers", "consumers", "consumers"),
    )
)

SPECS = tuple(spec for spec, _ in _METRICS)


def collect(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters, with the same selection and remainder as elsewhere."""
    families = MetricFamilies(SPECS)
    for snapshot in snapshots:
        selected = selection.of(snapshot.cluster).queues
        for queue in selected.shown:
            labels = {"cluster": snapshot.cluster, "vhost": queue.vhost, "queue": queue.name}
            for spec, path in _METRICS:
                families.add(spec, labels, value_at(queue, path))
        if selected.omitted:
            labels = {"cluster": snapshot.cluster, "vhost": "", "queue": OTHER}
            for spec, path in _METRICS:
                families.add(spec, labels, selected.remainder.get(path))
    return families.result()


COLLECTOR = Collector(SPECS, collect)

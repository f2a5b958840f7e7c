"""Objects omitted because of limits and patterns, by kind."""

from collections.abc import Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.specs import MetricFamilies, gauge

DROPPED = gauge(
    "ackscope_dropped_series",
    "Objects without series of their own because of a limit or pattern. Queues, channels, consumers, "
    "connections and exchanges are then in the series of the remainder, (other).",
    "metrics.max_*, metrics.exclude_queues",
    "cluster",
    "kind",
)
KINDS = (
    "queues",
    "channels",
    "consumers",
    "connections",
    "exchanges",
    "links",
    "policies",
    "limits",
    "features",
    "vhosts",
)
SPECS = (DROPPED,)


def collect(clusters: Sequence[Snapshot], selection: Selection) -> list[Metric]:
    """Metric families of all clusters; a kind that was never read has no sample."""
    families = MetricFamilies(SPECS)
    for snapshot in clusters:
        selected = selection.of(snapshot.cluster)
        for kind in KINDS:
            if snapshot.parts[kind].value is not None:
                families.add(DROPPED, {"cluster": snapshot.cluster, "kind": kind}, getattr(selected, kind).omitted)
    return families.result()


COLLECTOR = Collector(SPECS, collect)

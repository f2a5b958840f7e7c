"""Collectors for the settings `metrics.names` and `metrics.detailed`."""

from collections.abc import Callable, Mapping, Sequence

from prometheus_client.core import Metric

from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.compat import collect, detailed
from exporter.exposition.compat.names import MetricNames


def collectors_for(names: MetricNames, *, with_detailed: bool = False) -> Mapping[str, Collector]:
    """Return the collectors of the broker's metrics with these names. Each metric is emitted by one collector only.

    Args:
        names: the setting `metrics.names`.
        with_detailed: whether to add queue metrics with the names of `/metrics/detailed`.
    """
    found = _named(names)
    return {**found, "detailed": detailed.COLLECTOR} if with_detailed else found


def _named(names: MetricNames) -> Mapping[str, Collector]:
    if names is MetricNames.OFFICIAL:
        return COLLECTORS
    if names is MetricNames.RABBITMQ_EXPORTER:
        own = {name: _only(it, lambda metric: metric.startswith("ackscope_")) for name, it in COLLECTORS.items()}
        return {**{name: it for name, it in own.items() if it.specs}, "rabbitmq_exporter": collect.COLLECTOR}
    official = {spec.name for collector in COLLECTORS.values() for spec in collector.specs}
    return {**COLLECTORS, "rabbitmq_exporter": _only(collect.COLLECTOR, lambda metric: metric not in official)}


def _only(collector: Collector, keep: Callable[[str], bool]) -> Collector:
    """Return a collector limited to metrics whose name `keep` accepts."""
    specs = tuple(spec for spec in collector.specs if keep(spec.name))
    stems = {spec.stem for spec in specs}

    def some(snapshots: Sequence[Snapshot], selection: Selection) -> list[Metric]:
        return [metric for metric in collector.collect(snapshots, selection) if metric.name in stems]

    return Collector(specs, some)

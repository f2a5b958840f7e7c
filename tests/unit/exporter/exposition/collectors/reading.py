"""Samples of a collector for a handmade cluster, in a form that is easy to compare."""

from exporter.exposition.cardinality.top_k import TopK, select_all
from exporter.exposition.settings import MetricsSettings


def values(collect, *snapshots, **settings):
    """Metric name and label values (without the cluster) -> value, of the last of these moments.

    Without settings everything is shown.
    """
    chooser = TopK(MetricsSettings(**settings))
    selection = select_all(snapshots[-1:])
    for snapshot in snapshots if settings else ():
        selection = chooser.select([snapshot])
    return {
        (sample.name, *list(sample.labels.values())[1:]): sample.value
        for metric in collect(snapshots[-1:], selection)
        for sample in metric.samples
    }

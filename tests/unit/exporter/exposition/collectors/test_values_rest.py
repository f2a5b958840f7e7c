"""The remainder in the exposition: one series per metric, declared like the others."""

import pytest

from exporter.exposition.cardinality.selection import OTHER
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors import COLLECTORS, dropped
from exporter.exposition.encode import render
from exporter.exposition.settings import MetricsSettings
from tests.unit.exporter.exposition.collectors.test_collectors import check_declared
from tests.unit.exporter.full import full
from tests.unit.exporter.made import promtool

KINDS = dropped.KINDS


def capped(cap, *snapshots):
    """Collector -> what it makes where so many objects of each kind have series of their own."""
    chooser = TopK(MetricsSettings(**{f"max_{kind}": cap for kind in KINDS}))
    selection = chooser.select(snapshots)
    return {name: list(collector.collect(snapshots, selection)) for name, collector in COLLECTORS.items()}


@pytest.mark.parametrize("cap", [0, 1])
def test_what_is_left_out_makes_clean_text(cap):
    """Of two clusters, with caps that leave out most of what they have."""
    made = capped(cap, full("shop"), full("depot"))
    for name, metrics in made.items():
        check_declared(metrics, COLLECTORS[name].specs)

    assert "" == promtool(render(metric for metrics in made.values() for metric in metrics))


@pytest.mark.parametrize(("name", "label"), [("queues", "queue"), ("channels", "channel"), ("exchanges", "exchange")])
def test_with_a_cap_of_nothing_the_rest_is_all_there_is(name, label):
    """Nobody has a series of its own, and nothing is missing from the sums."""
    seen = {
        sample.labels[label]
        for metric in capped(0, full())[name]
        for sample in metric.samples
        if label in sample.labels
    }

    assert {OTHER} == seen

"""What every collector must hold."""

from dataclasses import replace

import pytest

from ackscope.clock import SystemClock
from ackscope.snapshot import FAMILIES, Part, Snapshot
from exporter.broker.read import read_once
from exporter.broker.settings import ManagementSettings
from exporter.collectors import COLLECTORS
from exporter.collectors.contract import Limits
from exporter.metrics import Kind
from exporter.render import render
from tests.unit.exporter.broker.server import VERSIONS, broker, serve
from tests.unit.exporter.made import NOW, promtool, small

EMPTY = Snapshot(cluster="new", taken=NOW)


def recorded(version):
    """The snapshot of a recorded broker."""
    with serve(broker(version)) as server:
        return read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)


def check_declared(metrics, specs):
    """Every sample has the declared name, type and labels, and is alone with them."""
    declared = {spec.stem: spec for spec in specs}
    seen = set()
    for metric in metrics:
        spec = declared[metric.name]
        assert spec.kind.value == metric.type
        for sample in metric.samples:
            assert spec.name == sample.name
            assert spec.labels == tuple(sample.labels)
            assert all(isinstance(value, str) for value in sample.labels.values())
            key = (sample.name, *sample.labels.values())
            assert key not in seen
            seen.add(key)
    return {name for name, *_ in seen}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", COLLECTORS)
def test_makes_what_it_declares_from_recorded_brokers(name, version):
    """What real brokers answered becomes declared metrics, and at least one."""
    collector = COLLECTORS[name]

    assert check_declared(collector.collect([recorded(version)], Limits()), collector.specs)


@pytest.mark.parametrize("version", VERSIONS)
def test_promtool_has_nothing_against_recorded_brokers(version):
    """The text of all collectors together is clean."""
    snapshot = recorded(version)
    text = render(metric for it in COLLECTORS.values() for metric in it.collect([snapshot], Limits()))

    assert "" == promtool(text)


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_cluster_that_was_never_read_has_no_sample(name):
    """Absent is not zero."""
    assert [] == list(COLLECTORS[name].collect([EMPTY], Limits()))


@pytest.mark.parametrize("name", COLLECTORS)
def test_clusters_do_not_mix(name):
    """Two clusters give each metric once, with the samples of both."""
    collector = COLLECTORS[name]
    alone = render(collector.collect([small("shop")], Limits()))
    both = list(collector.collect([small("shop"), EMPTY, small("depot")], Limits()))
    check_declared(both, collector.specs)

    assert alone.count("\n") - 2 * alone.count("# TYPE") == render(both).count('cluster="depot"')
    assert render(both).count('cluster="depot"') == render(both).count('cluster="shop"')


@pytest.mark.parametrize("family", FAMILIES)
def test_one_family_that_is_missing_harms_no_other(family):
    """Every collector works while any one family was never read."""
    snapshot = replace(small(), **{family: Part()})

    for collector in COLLECTORS.values():
        check_declared(list(collector.collect([snapshot], Limits())), collector.specs)


def test_names_are_declared_once():
    """No two collectors make the same metric, and counters end _total."""
    specs = [spec for collector in COLLECTORS.values() for spec in collector.specs]

    assert len(specs) == len({spec.name for spec in specs})
    assert all((spec.kind is Kind.COUNTER) == spec.name.endswith("_total") for spec in specs)

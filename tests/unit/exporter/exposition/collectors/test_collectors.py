"""Properties of every collector."""

from dataclasses import replace

import pytest

from ackscope.clock import SystemClock
from ackscope.snapshot import FAMILIES, Part, Snapshot
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import read_once
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.encode import render
from exporter.exposition.settings import MetricsSettings
from exporter.exposition.specs import MetricType
from tests.unit.exporter.broker.server import SHAPES, VERSIONS, broker, serve
from tests.unit.exporter.full import full
from tests.unit.exporter.made import NOW, promtool, small

EMPTY = Snapshot(cluster="new", taken=NOW)
MAY_BE_SILENT = {"certificates", "limits", "links", "policies"}
"""Collectors that may have no samples, because a broker may have no such objects."""


def collect(name, *snapshots):
    """Return the families of one collector for these clusters, which are small enough to show all objects."""
    return list(COLLECTORS[name].collect(snapshots, TopK(MetricsSettings()).select(snapshots)))


@pytest.fixture(scope="module", params=VERSIONS)
def recorded(request):
    """The snapshot of a recorded broker."""
    with serve(broker(request.param)) as server:
        return read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)


def check_declared(metrics, specs):
    """Check that every sample has the declared name, type and labels, and that no two are the same."""
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


@pytest.mark.parametrize("name", COLLECTORS)
def test_makes_what_it_declares_from_recorded_brokers(name, recorded):
    """Answers of real brokers become declared metrics, at least one."""
    made = check_declared(collect(name, recorded), COLLECTORS[name].specs)

    assert made or name in MAY_BE_SILENT


@pytest.mark.parametrize("name", COLLECTORS)
def test_makes_all_that_it_declares(name):
    """A cluster with all fields gives every declared metric."""
    made = check_declared(collect(name, full()), COLLECTORS[name].specs)

    assert {spec.name for spec in COLLECTORS[name].specs} == made


@pytest.mark.parametrize("name", COLLECTORS)
def test_versions_of_the_broker_are_respected(name, recorded):
    """A metric that is not declared for a version is not made from its answers."""
    made = {name for metric in collect(name, recorded) for name in (sample.name for sample in metric.samples)}
    version = recorded.version
    wrong = {
        spec.name
        for spec in COLLECTORS[name].specs
        if spec.name in made
        and ((spec.since is not None and version < spec.since) or (spec.until is not None and version >= spec.until))
    }

    assert set() == wrong


@pytest.mark.parametrize(("version", "shape"), [(version, shape) for version in VERSIONS for shape in SHAPES])
def test_brokers_in_every_state_give_declared_metrics(version, shape):
    """All recorded states (empty, in alarm, nodes down, no permission) give only declared metrics."""
    with serve(broker(version, shape)) as server:
        snapshot = read_once("shop", ManagementSettings(url=server.url), SystemClock(), 10)
    for name, collector in COLLECTORS.items():
        check_declared(collect(name, snapshot), collector.specs)

    assert "" == promtool(render(metric for name in COLLECTORS for metric in collect(name, snapshot)))


def test_promtool_has_nothing_against_recorded_brokers(recorded):
    """The text of all collectors together passes promtool."""
    assert "" == promtool(render(metric for name in COLLECTORS for metric in collect(name, recorded)))


def test_promtool_has_nothing_against_a_cluster_that_reports_everything():
    """This covers every metric."""
    assert "" == promtool(render(metric for name in COLLECTORS for metric in collect(name, full())))


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_cluster_that_was_never_read_has_no_sample(name):
    """Absent is not zero."""
    assert [] == collect(name, EMPTY)


@pytest.mark.parametrize("name", COLLECTORS)
def test_clusters_do_not_mix(name):
    """Two clusters give each metric once, with the samples of both."""
    alone = render(collect(name, full("shop")))
    both = collect(name, full("shop"), EMPTY, full("depot"))
    check_declared(both, COLLECTORS[name].specs)

    assert alone.count("\n") - 2 * alone.count("# TYPE") == render(both).count('cluster="depot"')
    assert render(both).count('cluster="depot"') == render(both).count('cluster="shop"')


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("make", [small, full])
def test_one_family_that_is_missing_harms_no_other(family, make):
    """Every collector works while any one family was never read."""
    snapshot = replace(make(), **{family: Part()})

    for name, collector in COLLECTORS.items():
        check_declared(collect(name, snapshot), collector.specs)


def test_names_are_declared_once():
    """No two collectors make the same metric, and counters end _total."""
    specs = [spec for collector in COLLECTORS.values() for spec in collector.specs]

    assert len(specs) == len({spec.name for spec in specs})
    assert all((spec.kind is MetricType.COUNTER) == spec.name.endswith("_total") for spec in specs)

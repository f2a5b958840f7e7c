"""The reference pages say what the code declares."""

import importlib
import pkgutil
from pathlib import Path

import pytest

import exporter
from exporter import docs
from exporter.docs import configuration, metrics, migrating
from exporter.docs.untested import UNTESTED
from exporter.exposition.compat.table import OLD_METRICS
from exporter.exposition.specs import MetricType, Spec

ROOT = Path(docs.__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "module"), [("metrics", metrics), ("configuration", configuration), ("migrating", migrating)]
)
def test_the_page_is_fresh(name, module):
    """`python -m exporter.docs.<name> > docs/<name>.md` writes the page."""
    assert module.page() == (ROOT / "docs" / f"{name}.md").read_text()


def specs():
    """Every declared metric."""
    return [spec for section in metrics.sections().values() for spec in section]


def declared():
    """Return the module of every metric that the exporter declares, by metric name."""
    found = {}
    for info in pkgutil.walk_packages(exporter.__path__, "exporter."):
        module = importlib.import_module(info.name)
        held = vars(module).values()
        several = [it for each in held if isinstance(each, tuple | list) for it in each]
        for spec in (*held, *several):
            if isinstance(spec, Spec):
                found[spec.name] = info.name
    return found


def test_every_metric_that_is_declared_anywhere_is_on_the_page():
    """A new module with metrics must be named in `sections`."""
    documented = {spec.name for spec in specs()} | {old.spec.name for old in OLD_METRICS}

    assert {} == {name: module for name, module in declared().items() if name not in documented}


def test_every_reason_to_not_change_is_that_of_a_metric():
    """When a metric is removed, its reason is removed too."""
    documented = {spec.name for spec in specs()}

    assert set() == set(UNTESTED) - documented


def test_every_metric_is_declared_once():
    """A name in two places would be two headings in the text, which readers refuse."""
    names = [spec.name for spec in specs()]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("spec", {spec.name: spec for spec in specs()}.values(), ids=lambda spec: spec.name)
def test_every_metric_is_named_by_the_rules(spec):
    """This covers prefix, suffix, a help text that is a sentence, a source, and a base unit."""
    assert spec.name.startswith(("ackscope_", "rabbitmq_", "probe_"))
    assert spec.name.startswith("probe_") == (spec in metrics.sections()[metrics.ONE_SHOT])
    assert (spec.kind is MetricType.COUNTER) == spec.name.endswith("_total")
    assert (spec.kind is MetricType.HISTOGRAM) == bool(spec.buckets)
    assert spec.help.endswith(".")
    assert spec.source
    assert not spec.untested.endswith(".")
    assert spec.since is None or spec.until is None or spec.since < spec.until
    assert "_milliseconds" not in spec.name
    assert len(set(spec.labels)) == len(spec.labels)


@pytest.mark.parametrize("key", list(configuration.keys()), ids=lambda key: ".".join(key.path))
def test_every_setting_has_a_type_and_a_variable(key):
    """The page tells how to override each."""
    assert key.kind
    assert key.variable.startswith("ACKSCOPE_")
    assert key.variable == key.variable.upper()


@pytest.mark.parametrize("key", list(configuration.keys()), ids=lambda key: ".".join(key.path))
def test_every_setting_is_explained(key):
    """In the docstring of its model."""
    assert key.about

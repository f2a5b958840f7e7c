"""The reference pages say what the code declares."""

from pathlib import Path

import pytest

from exporter import docs
from exporter.docs import configuration, metrics
from exporter.metrics import Kind

ROOT = Path(docs.__file__).parents[2]


@pytest.mark.parametrize(("name", "module"), [("metrics", metrics), ("configuration", configuration)])
def test_the_page_is_fresh(name, module):
    """`python -m exporter.docs.<name> > docs/<name>.md` makes it anew."""
    assert module.page() == (ROOT / "docs" / f"{name}.md").read_text()


def specs():
    """Every declared metric."""
    return [spec for section in metrics.sections().values() for spec in section]


def test_every_metric_is_declared_once():
    """A name in two places would be two headings in the text, which readers refuse."""
    names = [spec.name for spec in specs()]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.name)
def test_every_metric_is_named_by_the_rules(spec):
    """Its prefix, its ending, its help as a sentence, a source, and a unit that is a base unit."""
    assert spec.name.startswith(("ackscope_", "rabbitmq_", "probe_"))
    assert spec.name.startswith("probe_") == (spec in metrics.sections()[metrics.ONE_SHOT])
    assert (spec.kind is Kind.COUNTER) == spec.name.endswith("_total")
    assert (spec.kind is Kind.HISTOGRAM) == bool(spec.buckets)
    assert spec.help.endswith(".")
    assert spec.source
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

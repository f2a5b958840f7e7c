"""What the chart has copies of, without helm."""

import importlib.util
import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from ackscope import __version__

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/ackscope"


def build():
    """Return the build script as a module."""
    found = importlib.util.spec_from_file_location("build", ROOT / "deploy/helm/build.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_rules_and_dashboards_are_copies():
    """`python deploy/helm/build.py` makes them."""
    copies = dict(build().copies())

    assert {source.read_bytes() for source in copies} == {target.read_bytes() for target in copies.values()}
    assert set(copies.values()) == {path for path in (CHART / "files").rglob("*") if path.is_file()}


def test_the_chart_has_the_version_of_the_package():
    """scripts/release.py writes it."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (__version__, __version__) == (chart["version"], chart["appVersion"])


@pytest.mark.parametrize("path", [CHART / "values.yaml", *sorted(CHART.glob("ci/*.yaml"))], ids=lambda path: path.stem)
def test_values_fit_their_schema(path):
    """The defaults too."""
    jsonschema.validate(yaml.safe_load(path.read_text()), json.loads((CHART / "values.schema.json").read_text()))

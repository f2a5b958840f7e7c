"""`docs/exporter.md` shows configurations that work, and paths that there are."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ackscope.settings import load
from exporter import docs
from exporter.app import App
from exporter.exposition.live import reloads
from exporter.settings import ExporterSettings
from tests.unit.exporter.made import SetClock

PAGE = (Path(docs.__file__).parents[2] / "docs/exporter.md").read_text()


def block(name):
    """The YAML of the page that begins with this file's name."""
    (found,) = re.findall(rf"```yaml\n# {re.escape(name)}\n(.*?)```", PAGE, re.DOTALL)
    return found


def test_the_module_of_the_page_may_read_the_targets_of_the_page(tmp_path):
    """Both examples belong together: every target that Prometheus sends is allowed."""
    (tmp_path / "password").write_text("hush\n")
    config = tmp_path / "ackscope.yml"
    config.write_text(block("ackscope.yml").replace("/etc/ackscope/monitor", str(tmp_path / "password")))
    module = load(ExporterSettings, config, {}).modules["prod"]
    (job,) = yaml.safe_load(block("prometheus.yml"))["scrape_configs"]
    targets = job["static_configs"][0]["targets"]

    assert ["prod"] == job["params"]["module"]
    assert [f"http://{target}" for target in targets] == [module.management(target).url for target in targets]


def test_prometheus_takes_the_scrape_job(tmp_path):
    """As promtool reads it."""
    (tmp_path / "prometheus.yml").write_text(block("prometheus.yml"))
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.fixture
def paths():
    """Every path that an exporter serves."""
    settings = ExporterSettings.model_validate(
        {"listen": "127.0.0.1:0", "clusters": {"shop": {"management": {"url": "http://127.0.0.1:1"}}}}
    )
    exporter = App(settings, SetClock())
    exporter.stop()
    return set(exporter.routes)


def test_every_path_is_on_the_page(paths):
    """And no other."""
    table = PAGE.partition("## Reload")[0]

    assert paths == set(re.findall(r"`(/[a-z0-9/.-]+)[?`]", table))


@pytest.mark.parametrize("spec", reloads.SPECS, ids=lambda spec: spec.name)
def test_the_metrics_of_reloads_are_on_the_page(spec):
    """Under the names that they have."""
    assert f"`{spec.name}" in PAGE

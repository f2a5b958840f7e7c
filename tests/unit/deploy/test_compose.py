"""The compose file: paths that exist, commands that ackscope takes, and files that Prometheus accepts."""

import argparse
import importlib
import subprocess
from pathlib import Path

import pytest
import yaml

from ackscope.__main__ import COMMANDS

FOLDER = Path(__file__).parents[3] / "deploy/compose"
DOCUMENT = yaml.safe_load((FOLDER / "compose.yml").read_text())
SERVICES = DOCUMENT["services"]
OURS = [name for name, service in SERVICES.items() if "ackscope" in service["image"]]


def mounts():
    """Service, source and target of each volume."""
    return [(name, *volume.split(":")[:2]) for name, each in SERVICES.items() for volume in each.get("volumes", [])]


def test_every_mounted_path_exists_and_every_volume_is_declared():
    """A missing file would become an empty folder."""
    paths = {source for _, source, _ in mounts() if source.startswith(".")}
    named = {source for _, source, _ in mounts()} - paths

    assert [] == [path for path in paths if not (FOLDER / path).exists()]
    assert named == set(DOCUMENT["volumes"])


@pytest.mark.parametrize("name", [name for name in OURS if "command" in SERVICES[name]])
def test_every_command_is_one_that_ackscope_takes(name):
    """With values as the container gets them."""
    command, *words = SERVICES[name]["command"]
    parser = argparse.ArgumentParser()
    importlib.import_module(COMMANDS[command].module).add_arguments(parser)

    assert all(isinstance(word, str) for word in words)
    parser.parse_args(words)


@pytest.mark.parametrize("name", OURS)
def test_containers_of_ackscope_have_few_rights(name):
    """As the image is made for."""
    service = SERVICES[name]

    assert (True, ["ALL"], ["/tmp"]) == (service["read_only"], service["cap_drop"], service["tmpfs"])


def test_ports_are_published_on_loopback_and_no_password_is_written_down():
    """Others come in through a proxy."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    text = (FOLDER / "compose.yml").read_text()

    assert [] == [port for port in ports if not port.startswith("127.0.0.1:")]
    assert "${RABBITMQ_PASSWORD:?" in text
    assert "${GRAFANA_PASSWORD:?" in text


def test_prometheus_finds_its_rules_and_its_targets(tmp_path):
    """A real promtool, with the rules where the container has them."""
    text = (FOLDER / "prometheus.yml").read_text()
    for name, source, target in mounts():
        if name == "prometheus" and source.endswith(".yml"):
            text = text.replace(target, str((FOLDER / source).resolve()))
    (tmp_path / "prometheus.yml").write_text(text)
    words = ["promtool", "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    document = yaml.safe_load(text)
    asked = [each["targets"] for job in document["scrape_configs"] for each in job["static_configs"]]
    asked += [each["targets"] for job in document["alerting"]["alertmanagers"] for each in job["static_configs"]]

    assert 0 == done.returncode, done.stderr
    assert "2 rule files found" in done.stdout
    assert {"exporter", "alertmanager"} == {target.partition(":")[0] for targets in asked for target in targets}


def test_grafana_gets_the_dashboards_and_the_source_that_they_ask_for():
    """The folder of the provider is the one that is mounted."""
    provider = yaml.safe_load((FOLDER / "grafana/dashboards/ackscope.yml").read_text())["providers"][0]
    source = yaml.safe_load((FOLDER / "grafana/datasources/prometheus.yml").read_text())["datasources"][0]
    places = {target: source for name, source, target in mounts() if name == "grafana"}
    boards = FOLDER / places[provider["options"]["path"]]

    assert 5 <= len(list(boards.glob("*.json")))
    assert ("prometheus", "http://prometheus:9090") == (source["type"], source["url"])
    assert source["url"].split("/")[2].partition(":")[0] in SERVICES

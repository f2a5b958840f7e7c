"""The systemd unit and its example: what they name exists, and the exporter accepts it."""

import argparse
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from ackscope.errors import EXIT_COULD_NOT
from ackscope.settings import load
from exporter.commands import serve
from exporter.runtime.run_loop import READY_WITHIN
from exporter.settings import ExporterSettings

FOLDER = Path(__file__).parents[3] / "deploy/systemd"


class _Unit(ConfigParser):
    def optionxform(self, optionstr):
        return optionstr


@pytest.fixture
def service():
    """Return the service section; the last value counts for duplicate keys."""
    unit = _Unit(strict=False, interpolation=None, delimiters=("=",))
    unit.read(FOLDER / "ackscope-exporter.service")
    return unit["Service"]


def test_the_command_line_is_one_that_the_exporter_takes(service):
    """Its options exist."""
    program, command, *words = service["ExecStart"].split()
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    args = parser.parse_args(words)

    assert ("ackscope", "exporter") == (Path(program).name, command)
    assert Path("/etc/ackscope/exporter.yml") == args.config


def test_what_is_told_to_the_manager_is_what_the_unit_asks_for(service):
    """The unit covers readiness, reload by the handled signal, and no restart after a configuration error."""
    assert ("notify", "main") == (service["Type"], service["NotifyAccess"])
    assert service["ExecReload"].endswith("kill -HUP $MAINPID")
    assert str(EXIT_COULD_NOT) == service["RestartPreventExitStatus"]
    assert int(service["TimeoutStartSec"].removesuffix("s")) > READY_WITHIN
    assert int(service["WatchdogSec"].removesuffix("s")) >= 30


def test_the_example_reads_the_credentials_that_the_unit_loads(tmp_path):
    """Their names agree, and with the files in place the example is a good configuration."""
    unit = (FOLDER / "ackscope-exporter.service").read_text()
    loaded = {line.partition("=")[2].partition(":")[0] for line in unit.splitlines() if line.startswith("LoadCred")}
    text = (FOLDER / "exporter.yml").read_text()
    place = "/run/credentials/ackscope-exporter.service"
    shop = yaml.safe_load(text)["clusters"]["shop"]
    for name in loaded:
        (tmp_path / name).write_text("hush\n")
    example = tmp_path / "exporter.yml"
    example.write_text(text.replace(place, str(tmp_path)))
    settings = load(ExporterSettings, example, {})

    assert {f"{place}/{name}" for name in loaded} == {part["password_file"] for part in shop.values()}
    assert settings.landing.directory is not None
    assert settings.landing.directory.is_relative_to("/var/lib/ackscope")

"""The systemd units and the example: what they name exists, systemd and the commands accept it."""

import argparse
import importlib
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from ackscope.__main__ import COMMANDS
from ackscope.errors import EXIT_COULD_NOT
from ackscope.settings import load
from exporter.commands import serve
from exporter.runtime.run_loop import READY_WITHIN
from exporter.settings import ExporterSettings

FOLDER = Path(__file__).parents[3] / "deploy/systemd"


class _Unit(ConfigParser):
    def optionxform(self, optionstr):
        return optionstr


UNITS = sorted(FOLDER.glob("*.service"))

EXPOSURE = "20"
"""Ten times the exposure level of `systemd-analyze security` that no unit may exceed; without hardening it is 96."""


def service_of(path):
    """Return the service section; the last value counts for duplicate keys."""
    unit = _Unit(strict=False, interpolation=None, delimiters=("=",))
    unit.read(path)
    return unit["Service"]


@pytest.fixture
def service():
    """Return the service section of the exporter."""
    return service_of(FOLDER / "ackscope-exporter.service")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_every_command_of_a_unit_is_one_that_ackscope_takes(path):
    """Options included, and with folders below the state directory of the unit."""
    lines = [line.partition("=")[2] for line in path.read_text().splitlines() if line.startswith("ExecStart=")]

    assert lines
    for line in lines:
        program, command, *words = shlex.split(line)
        parser = argparse.ArgumentParser()
        importlib.import_module(COMMANDS[command].module).add_arguments(parser)
        parser.parse_args(words)
        places = [word for word in words if word.startswith("/var/")]

        assert "ackscope" == Path(program).name
        assert all(Path(place).is_relative_to("/var/lib/ackscope") for place in places)
    assert service_of(path)["StateDirectory"].split()[0] == "ackscope"
    assert ("ackscope", "yes") == (service_of(path)["User"], service_of(path)["DynamicUser"])


def test_systemd_accepts_the_units(tmp_path):
    """A real systemd-analyze; the program of the units is one that exists here."""
    for path in FOLDER.glob("ackscope-*"):
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/ackscope/.venv/bin/ackscope", sys.executable))
    files = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "ackscope" in line]

    assert 5 == len(files)
    assert (0, []) == (done.returncode, ours)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_units_are_hardened(path):
    """By the judgement of systemd itself."""
    words = ["security", "--offline=true", f"--threshold={EXPOSURE}", str(path)]
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout.splitlines()[-1:]


def test_the_command_line_is_one_that_the_exporter_takes(service):
    """Its options exist."""
    program, command, *words = service["ExecStart"].split()
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    args = parser.parse_args(words)

    assert ("ackscope", "exporter") == (Path(program).name, command)
    assert Path("/etc/ackscope/exporter.yml") == args.config


def test_what_is_reported_to_the_manager_is_what_the_unit_asks_for(service):
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

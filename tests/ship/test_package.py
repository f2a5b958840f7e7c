"""The wheel: complete, the same bytes each time, and everything works from it without the checkout."""

import hashlib
import json
import os
import signal
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import requests

from ackscope.__main__ import COMMANDS
from exporter.commands.files import SETS
from lab.ports import free_ports
from tests.ship.running import ROOT, eventually, run, running

# Builds on a busy machine are slow.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

PACKAGES = {"ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab"}


def tracked(*folders):
    """Files of the checkout that belong to it."""
    listed = run("git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard", *folders).splitlines()
    return {name for name in listed if (ROOT / name).is_file()}


def wheel_of(folder):
    """The path of the wheel."""
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_has_every_file_of_its_packages_and_no_tests(release):
    """Catalogue, style sheets, log4j properties, rules, dashboards, units, chart; no package beside these."""
    with zipfile.ZipFile(wheel_of(release)) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    expected = tracked(*sorted(PACKAGES)) | {f"ackscope/{name}" for name in tracked("deploy")}

    assert set() == expected - names
    assert set() == names - expected
    assert {name.partition("/")[0] for name in names} == PACKAGES


def test_the_sdist_has_everything_that_the_checkout_has(release):
    """So that tests can be run from it."""
    (path,) = release.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    not_shipped = {".ci/run", ".gitignore"}

    assert set() == tracked() - names - not_shipped


def test_another_checkout_makes_the_same_bytes(release, tmp_path, uv):
    """Other folder, other times, other permissions for others."""
    copy = tmp_path / "elsewhere"
    for name in sorted(tracked()):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
        target.chmod((ROOT / name).stat().st_mode & 0o755 | 0o600)
    epoch = run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    constraints = tmp_path / "backend.txt"
    constraints.write_text("hatchling==1.33.0\n")
    words = ["build", "--quiet", "--build-constraints", constraints, "--out-dir", tmp_path / "out", copy]
    run(uv, *words, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})

    for path in (tmp_path / "out").glob("ackscope-*"):
        assert path.read_bytes() == (release / path.name).read_bytes(), path.name


def test_checksums_and_bill_of_materials_agree_with_the_files(release):
    """Every file has its sum; every package that is installed is in the bill, with a hash, and no tool of the tests."""
    sums = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in release.glob("ackscope-*")}
    (bill,) = release.glob("*.cdx.json")
    document = json.loads(bill.read_text())
    named = {component["name"].lower(): component for component in document["components"]}

    assert files == sums
    assert ("CycloneDX", "1.6") == (document["bomFormat"], document["specVersion"])
    assert "ackscope" == document["metadata"]["component"]["name"]
    assert {"pyarrow", "pika", "streamlit", "pyspark"} <= set(named)
    assert not {"pytest", "ruff", "mypy", "playwright"} & set(named)
    assert [] == [name for name, component in named.items() if not _hashed(component)]


def _hashed(component):
    references = component.get("externalReferences", [])
    return component.get("hashes") or any(reference.get("hashes") for reference in references)


@pytest.fixture(scope="session")
def installed(release, tmp_path_factory, uv):
    """`ackscope` in an environment that was empty, run from an empty folder: the base, without extras."""
    return _installed(release, tmp_path_factory.mktemp("base"), uv, "")


@pytest.fixture(scope="session")
def installed_all(release, tmp_path_factory, uv):
    """The same with all extras."""
    return _installed(release, tmp_path_factory.mktemp("all"), uv, "[all]")


def _installed(release, folder, uv, extra):
    run(uv, "venv", "--quiet", "--python", "python3", folder / "venv")
    python = folder / "venv/bin/python"
    # The versions of the release; without them it works the same, until a package breaks its promises.
    pins = release / f"{wheel_of(release).name.rsplit('-', 3)[0]}-requirements-all.txt"
    plain = folder / "constraints.txt"
    plain.write_text("\n".join(line.split(" ")[0] for line in pins.read_text().splitlines() if "==" in line) + "\n")
    run(uv, "pip", "install", "--quiet", "--python", python, "-c", plain, f"ackscope{extra} @ {wheel_of(release)}")
    (folder / "empty").mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ACKSCOPE_"))}
    environ.update(HOME=str(folder), XDG_STATE_HOME=str(folder / "state"))
    environ["PATH"] = f"{folder / 'venv/bin'}:{environ['PATH']}"

    def ackscope(*words, start=subprocess.run, **options):
        command = [str(folder / "venv/bin/ackscope"), *map(str, words)]
        return start(command, cwd=folder / "empty", env=environ, text=True, **options)

    ackscope.site = next((folder / "venv/lib").glob("python*/site-packages"))
    return ackscope


@pytest.mark.parametrize("command", [name for name, entry in COMMANDS.items() if entry.extra is None])
def test_every_command_works_without_extras(installed, command):
    """Its help, that is: everything that it imports is there."""
    done = installed(command, "--help", capture_output=True)

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith(f"usage: ackscope {command}")


@pytest.mark.parametrize(
    "words",
    [
        ["pipeline", "run", "--landing", ".", "--rollups", "."],
        [
            "dashboard",
            "--exporter",
            "http://127.0.0.1:9",
            "--rollups",
            ".",
            "--listen",
            f"127.0.0.1:{free_ports(1)[0]}",
        ],
    ],
    ids=lambda words: words[0],
)
def test_a_command_names_its_extra_if_that_is_missing(installed, words):
    """In one line."""
    done = installed(*words, capture_output=True)

    assert (3, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert f"pip install 'ackscope[{words[0]}]'" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_with_all_extras_every_command_works(installed_all, command):
    """Also those of the extras."""
    done = installed_all(command, "--help", capture_output=True)

    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("name", SETS)
def test_files_for_administrators_come_out_of_the_wheel(installed, name, tmp_path):
    """The same as in the checkout."""
    done = installed("files", name, "-o", tmp_path / name, "--json", capture_output=True)
    written = {str(path.relative_to(tmp_path / name)) for path in (tmp_path / name).rglob("*") if path.is_file()}
    folder = ROOT / "deploy" / name
    expected = {
        str(Path(file).relative_to(f"deploy/{name}")) for file in tracked(folder) if not file.endswith("build.py")
    }

    assert 0 == done.returncode, done.stderr
    assert set(json.loads(done.stdout)["files"]) == written
    assert expected == written


@pytest.fixture
def lab(installed):
    """A broker with a fault, started by the installed command."""
    started = installed("lab", "up", "--json", capture_output=True)
    try:
        assert 0 == started.returncode, started.stderr
        assert 0 == installed("lab", "fault", "stuck-consumer", capture_output=True).returncode
        yield json.loads(started.stdout)["nodes"][0]
    finally:
        installed("lab", "down", capture_output=True)


def test_from_an_empty_environment_to_the_first_finding(installed, lab, tmp_path):
    """`ackscope init` writes a configuration, its first diagnosis names a real fault, and the exporter reports it."""
    look = ["diagnose", "--management", lab["management"], "--json"]
    # A fault has to last before it is one.
    eventually(lambda: '"stuck-consumer"' in installed(*look, capture_output=True).stdout, 180)
    words = ["--management", lab["management"], "-o", tmp_path, "--yes", "--json"]
    done = installed("init", *words, capture_output=True)

    assert 0 == done.returncode, done.stderr
    assert "stuck-consumer" in [finding["rule"] for finding in json.loads(done.stdout)["findings"]]

    port = free_ports(1)[0]
    listen = ["--web.listen-address", f"127.0.0.1:{port}"]
    with serving(
        installed, f"http://127.0.0.1:{port}/-/ready", "exporter", *listen, "--config.file", tmp_path / "ackscope.yml"
    ):
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: '"stuck-consumer"' in requests.get(f"{url}/api/v1/findings", timeout=10).text)

        assert 200 == requests.get(f"{url}/runbook?rule=stuck-consumer", timeout=10).status_code

        eventually(lambda: 'outcome="acked"' in requests.get(f"{url}/metrics", timeout=10).text)
        eventually(lambda: list((tmp_path / "data/landing").rglob("*.parquet")))


def serving(installed, url, *words):
    """The installed command as a server; SIGTERM ends it."""
    process = installed(*words, start=subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return running(process, url, lambda each: each.send_signal(signal.SIGTERM))


def test_the_page_works_from_the_wheel(installed_all, tmp_path):
    """Streamlit finds its script and its style sheets."""
    port = free_ports(1)[0]
    words = ["--exporter", "http://127.0.0.1:9", "--rollups", tmp_path, "--listen", f"127.0.0.1:{port}"]
    with serving(installed_all, f"http://127.0.0.1:{port}/_stcore/health", "dashboard", *words):
        assert "<title>" in requests.get(f"http://127.0.0.1:{port}/", timeout=10).text


def test_the_demo_works_from_the_wheel(installed_all):
    """Broker, exporter, Spark, page and Prometheus, with the rules of the wheel."""
    done = installed_all("demo", "--for", "60", "--json", capture_output=True)
    document = json.loads(done.stdout)

    assert 0 == done.returncode, done.stderr[-2000:]
    assert document["metrics_ok"]
    assert document["dashboard_ok"]
    assert document["rollup_rows"]

"""`ackscope init` on real brokers, as an administrator and as a user that may only read."""

import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
import requests

from ackscope.settings import load
from exporter.settings import ExporterSettings

pytestmark = pytest.mark.integration


def init(*words, stdin=""):
    """Run the command without a terminal."""
    command = [sys.executable, "-m", "ackscope", "init", *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture
def names(lab, request):
    """Options with names of this test alone; what was made is removed afterwards."""
    management = lab.nodes[0].management
    mark = f"{request.node.name.partition('[')[0][-20:]}".replace("_", "-")
    monitor, probe, vhost = f"monitor-{mark}", f"probe-{mark}", f"vhost-{mark}"
    yield ["--monitor-user", monitor, "--probe-user", probe, "--probe-vhost", vhost]
    for path in (f"users/{monitor}", f"users/{probe}", f"vhosts/{vhost}"):
        requests.delete(f"{management}/api/{path}", timeout=10)


def stream_port(lab):
    """The port of the broker's stream protocol; None without the plugin."""
    listeners = requests.get(f"{lab.nodes[0].management}/api/overview", timeout=10).json()["listeners"]
    return next((each["port"] for each in listeners if each["protocol"] == "stream"), None)


def users(lab):
    """Names of the users of the broker."""
    answer = requests.get(f"{lab.nodes[0].management}/api/users", timeout=10)
    return {user["name"] for user in answer.json()}


def test_from_an_address_to_a_working_configuration(lab, names, tmp_path):
    """Users with no more rights than they need, files that only their owner can read, and probes that run."""
    management = lab.nodes[0].management
    done = init("--management", management, "-o", tmp_path, *names, "--name", "shop", "--yes")

    assert 0 == done.returncode, done.stderr

    settings = load(ExporterSettings, tmp_path / "ackscope.yml", {}).clusters["shop"]
    address = settings.management.address()
    held = {path.name: path.read_text().strip() for path in (tmp_path / "credentials").iterdir()}
    who = requests.get(f"{address.url}/api/whoami", auth=(address.username, address.password), timeout=10).json()

    assert {"monitor", "probe"} == set(held)
    assert [0o600, 0o600] == [path.stat().st_mode & 0o777 for path in (tmp_path / "credentials").iterdir()]
    assert held["monitor"] == address.password
    assert "monitoring" in who["tags"]
    assert "administrator" not in who["tags"]
    assert names[-1] == settings.amqp.server().address.vhost
    assert stream_port(lab) == settings.amqp.stream_port
    assert "probe: confirm quorum running" in done.stdout
    assert "rabbitmqctl add_user monitor-" in done.stdout

    secrets = [*held.values(), urlsplit(management).password + "@"]

    assert not [secret for secret in secrets if secret in done.stdout + done.stderr]

    again = init("--management", management, "-o", tmp_path, *names, "--force", "--json", "--yes")

    assert [] == json.loads(again.stdout)["changes"]
    assert held["probe"] == (tmp_path / "credentials/probe").read_text().strip()


def test_nothing_is_changed_without_consent(lab, names, tmp_path):
    """Neither by a dry run nor where nobody can be asked."""
    before = users(lab)
    dry = init("--management", lab.nodes[0].management, "-o", tmp_path / "new", *names, "--dry-run", "--json")
    unasked = init("--management", lab.nodes[0].management, "-o", tmp_path / "new", *names)

    assert 6 == len(json.loads(dry.stdout)["changes"])
    assert (0, 3) == (dry.returncode, unasked.returncode)
    assert "use --yes" in unasked.stderr
    assert before == users(lab)
    assert not (tmp_path / "new").exists()


def test_a_user_that_only_reads_gets_commands_for_an_administrator(lab, names, tmp_path):
    """It becomes the user of the exporter itself."""
    management = lab.nodes[0].management
    monitor = names[1]
    document = {"password": "hush", "tags": "monitoring"}
    requests.put(f"{management}/api/users/{monitor}", json=document, timeout=10).raise_for_status()
    before = users(lab)
    (tmp_path / "password").write_text("hush\n")
    url = f"http://{monitor}@{urlsplit(management).hostname}:{urlsplit(management).port}"
    done = init("--management", url, "--password-file", tmp_path / "password", "-o", tmp_path, *names)
    settings = load(ExporterSettings, tmp_path / "ackscope.yml", {})

    assert 0 == done.returncode, done.stderr
    assert f"rabbitmqctl add_user {names[3]}" in done.stdout
    assert "hush" not in done.stdout + done.stderr
    assert before == users(lab)
    assert [monitor] == [each.management.username for each in settings.clusters.values()]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--management", "nonsense"], "--management: no scheme"),
        (["--management", "http://127.0.0.1:1"], "connection refused"),
        (["--management", "http://ann@127.0.0.1:1"], "no password of 'ann'"),
        (["--management", "http://127.0.0.1:1", "--name", "a b"], "--name: invalid name 'a b'"),
        (["--management", "http://127.0.0.1:1", "--amqp", "amqp://h", "--no-probes"], "--no-probes: remove it"),
        (["--management", "http://127.0.0.1:1", "--password-file", "/none"], "/none cannot be read"),
    ],
)
def test_bad_input_is_one_line(words, line, tmp_path):
    """And nothing is written."""
    done = init(*words, "-o", tmp_path / "new")

    assert (3, 1) == (done.returncode, done.stderr.count("\n"))
    assert line in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_user_whose_password_is_unknown_is_not_changed(lab, names, tmp_path):
    """Somebody else may use it."""
    management = lab.nodes[0].management
    requests.put(
        f"{management}/api/users/{names[1]}", json={"password": "x", "tags": ""}, timeout=10
    ).raise_for_status()
    done = init("--management", management, "-o", tmp_path, *names, "--yes")

    assert 3 == done.returncode
    assert "choose another name, or give it a new password with --new-passwords" in done.stderr
    assert not (tmp_path / "ackscope.yml").exists()

from pathlib import Path

import pytest

from ackscope.errors import MissingPart, UsageError
from lab.bootstrap import build, cache_directory
from lab.brokers import NAMES, SUITES, Broker, find_broker, installed, minor


def make_package(root, version):
    """Return a root folder that looks like an installed RabbitMQ of this version."""
    package = root / "usr/lib/rabbitmq"
    (package / "lib" / f"rabbitmq_server-{version}").mkdir(parents=True)
    (package / "bin").mkdir()
    (package / "bin/rabbitmq-server").touch()


def test_versions_have_names():
    """The names that commands and tests hold on to."""
    assert ("distro", "3.10", "4.0", "4.3") == NAMES
    assert {"3.10": "bookworm", "4.0": "trixie", "4.3": "sid"} == SUITES


def test_an_unknown_name_is_refused_with_the_nearest():
    """One line: what is wrong, what was meant, what there is."""
    with pytest.raises(UsageError) as caught:
        find_broker("4.2")

    assert "unknown broker '4.2', did you mean '4.3'?; known: distro, 3.10, 4.0, 4.3" == str(caught.value)


def test_another_version_needs_root(monkeypatch, tmp_path):
    """Only root can enter such a folder; the message says what to do."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(MissingPart) as caught:
        find_broker("4.3", {"ACKSCOPE_CACHE_DIR": str(tmp_path)})

    assert "the 4.3 broker runs in a chroot, which needs root: run as root or with sudo" == str(caught.value)


def test_building_needs_debootstrap(monkeypatch, tmp_path):
    """The missing program is named, and how to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingPart) as caught:
        build("4.3", "sid", tmp_path / "sid")

    assert "debootstrap is missing: run make setup, or apt-get install debootstrap" == str(caught.value)


def test_the_version_is_read_from_the_package(tmp_path):
    """No program is run for it."""
    assert installed(tmp_path) is None

    make_package(tmp_path, "4.3.6")

    assert "4.3.6" == installed(tmp_path)
    assert "4.3" == minor("4.3.6")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({"ACKSCOPE_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a"), id="own"),
        pytest.param({"XDG_CACHE_HOME": "/b"}, Path("/b/ackscope"), id="xdg"),
        pytest.param({}, Path.home() / ".cache/ackscope", id="home"),
    ],
)
def test_built_brokers_stay_in_the_users_cache(environ, expected):
    """Never in the checkout."""
    assert expected == cache_directory(environ)


def test_the_hosts_own_broker_is_run_as_it_is():
    """Directly, past the wrapper that would change the user."""
    broker = Broker("distro", "3.10.8")

    assert ["/usr/lib/rabbitmq/bin/rabbitmqctl", "status"] == broker.command(Path("/x"), "rabbitmqctl", "status")
    assert Path("/x") == broker.inside(Path("/x"))


def test_a_broker_in_a_folder_is_entered_in_a_private_namespace(tmp_path):
    """Mounts end with the process; arguments are passed as they are, never through a shell."""
    broker = Broker("4.3", "4.3.6", tmp_path)

    command = broker.command(Path("/x"), "rabbitmqctl", "a b", "$(c)")

    assert ["unshare", "--mount", "--propagation", "private", "sh", "-ec"] == command[:6]
    assert [str(tmp_path), "/x", "/usr/lib/rabbitmq/bin/rabbitmqctl", "a b", "$(c)"] == command[8:]
    assert Path("/lab") == broker.inside(Path("/x"))


def test_a_folder_is_made_ready_with_the_names_of_this_host(tmp_path):
    """Without /etc/hosts no node would know localhost."""
    (tmp_path / "etc").mkdir()

    Broker("4.3", "4.3.6", tmp_path).prepare()

    assert Path("/etc/hosts").read_bytes() == (tmp_path / "etc/hosts").read_bytes()
    assert ["hosts"] == [path.name for path in (tmp_path / "etc").iterdir()]
    assert (tmp_path / "lab").is_dir()

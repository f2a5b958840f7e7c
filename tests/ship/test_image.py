"""The images, really built over a base made by debootstrap, and run with a read-only root, not as root."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import requests
import yaml

from lab.bootstrap import cache_directory
from lab.ports import free_ports
from tests.ship.running import ROOT, eventually, needed, run, running

# Builds on a busy machine are slow.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(2400)]

FILE = ROOT / "deploy/image/Containerfile"
USER = 10001

# In a mount namespace of its own: the root of the image read-only, with the two folders that it may write to.
READ_ONLY = """
mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1"
mount -t proc proc proc && mount --rbind /dev dev && mount -t tmpfs -o mode=1777 tmpfs tmp
# As every runtime of containers does.
touch etc/hosts && mount --bind /etc/hosts etc/hosts
mount --bind "$2" var/lib/ackscope && mount --bind "$3" etc/ackscope
mount -o remount,bind,ro "$1"
shift 3
exec chroot --userspec=10001:10001 . /usr/bin/env -i "$@"
"""


class Images:
    """Buildah with a store of its own."""

    def __init__(self, folder):
        self._options = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs"]

    def buildah(self, *words, **options):
        """Run buildah."""
        return run(needed("buildah"), *self._options, *words, **options)

    def names(self):
        """Names of all images."""
        listed = self.buildah("images", "--noheading", "--format", "{{.Name}}:{{.Tag}}")
        return listed.split()

    def config(self, name):
        """Configuration of an image."""
        return json.loads(self.buildah("inspect", "--type", "image", name))["Docker"]["config"]


class Image:
    """A built image with one container.

    Attributes:
        config: user, command, environment, labels and so on.
    """

    def __init__(self, images, name, container):
        self._images, self._container = images, container
        self.config = images.config(name)
        self._root = images.buildah("mount", container).strip()

    def run(self, *words):
        """`buildah run`: as the user of the image."""
        return self._images.buildah("run", "--isolation", "chroot", self._container, "--", *words)

    def read_only(self, data, settings, *words, **environ):
        """The command that runs words with a read-only root, in the environment of the image."""
        given = dict(entry.partition("=")[::2] for entry in self.config["Env"]) | environ
        shown = [f"{name}={value}" for name, value in given.items()]
        unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", READ_ONLY, "sh"]
        return list(map(str, [*unshare, self._root, data, settings, *shown, *words]))


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A store with the base image, which stays for the next run; the rest is removed."""
    folder = cache_directory(os.environ) / "images"
    store = Images(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if "localhost/base:bookworm" not in store.names():
        root = tmp_path_factory.mktemp("base")
        run(needed("debootstrap"), "--variant=minbase", "bookworm", root / "base")
        (root / "Containerfile").write_text("FROM scratch\nCOPY . /\n")
        store.buildah("bud", "-f", root / "Containerfile", "-t", "localhost/base:bookworm", root / "base")
    yield store
    store.buildah("rm", "--all")
    for name in store.names():
        if name.startswith("localhost/ackscope:"):
            store.buildah("rmi", name)
    # What the stages of the builds left.
    store.buildah("rmi", "--prune", "--force")


def built(images, release, folder, target):
    """An image of the release. pip in it trusts the certificates that this machine trusts."""
    pip = folder / f"{target}.conf"
    pip.write_text("[global]\ncert = /etc/ssl/certs/of-the-host.crt\ntimeout = 180\n")
    certificates = "/etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/of-the-host.crt:ro"
    name = f"localhost/ackscope:{target}"
    words = ["--isolation", "chroot", "--format", "docker", "--target", target, "-f", FILE, "-t", name]
    arguments = ["--build-arg", "BASE=localhost/base:bookworm", "--build-arg", "VERSION=1.2.3"]
    images.buildah("bud", *words, *arguments, "--secret", f"id=pip.conf,src={pip}", "-v", certificates, release)
    return Image(images, name, images.buildah("from", name).strip())


@pytest.fixture(scope="session")
def exporter_image(images, release, tmp_path_factory):
    """The small one."""
    return built(images, release, tmp_path_factory.mktemp("pip"), "exporter")


@pytest.fixture(scope="session")
def full_image(images, release, tmp_path_factory):
    """With Java, Spark and the page."""
    return built(images, release, tmp_path_factory.mktemp("pip"), "full")


@pytest.fixture
def folders(tmp_path):
    """Data, which belongs to the user of the image, and a configuration folder."""
    data, settings = tmp_path / "data", tmp_path / "settings"
    for folder in (data, data / "landing", data / "rollups", settings):
        folder.mkdir()
        os.chown(folder, USER, USER)
    return data, settings


def test_the_image_says_what_it_is_and_runs_as_nobody_special(exporter_image):
    """User, labels, health check, and no file that gives a user more rights than it has."""
    config = exporter_image.config
    labels = config["Labels"]

    assert (f"{USER}:{USER}", ["ackscope"]) == (config["User"], config["Entrypoint"])
    assert ("Apache-2.0", "1.2.3") == tuple(
        labels[f"org.opencontainers.image.{name}"] for name in ("licenses", "version")
    )
    assert "CMD" == config["Healthcheck"]["Test"][0]
    assert f"{USER}\n" == exporter_image.run("id", "-u")
    assert "usage: ackscope" in exporter_image.run("ackscope", "--help")
    assert "" == exporter_image.run("sh", "-c", "command -v gcc pip || true")


def test_the_exporter_runs_read_only(exporter_image, broker, folders):
    """Its default command polls and probes a real broker, is healthy, lands rows, and ends at SIGTERM."""
    data, settings = folders
    port = free_ports(1)[0]
    node = broker.nodes[0]
    document = {
        "clusters": {"shop": {"management": {"url": node.management}, "amqp": {"url": node.amqp}}},
        "landing": {"directory": "/var/lib/ackscope/landing", "rotate": "1s"},
    }
    (settings / "ackscope.yml").write_text(yaml.safe_dump(document))
    config = exporter_image.config
    health = [word.replace(":9419/", f":{port}/") for word in config["Healthcheck"]["Test"][1:]]
    url = f"http://127.0.0.1:{port}"
    command = [*config["Entrypoint"], *config["Cmd"]]
    with serving(
        exporter_image.read_only(data, settings, *command, ACKSCOPE_LISTEN=f"127.0.0.1:{port}"), f"{url}/-/ready"
    ):
        eventually(lambda: 'outcome="acked"' in requests.get(f"{url}/metrics", timeout=10).text)
        landed = eventually(lambda: list((data / "landing").rglob("*.parquet")))
        run(*exporter_image.read_only(data, settings, *health))

        assert {USER} == {path.stat().st_uid for path in landed}
    ended = subprocess.run(exporter_image.read_only(data, settings, *health), capture_output=True, check=False)

    assert 0 != ended.returncode

    refused = exporter_image.read_only(data, settings, "touch", "/opt/ackscope/x")

    assert "Read-only" in subprocess.run(refused, capture_output=True, text=True, check=False).stderr


def serving(command, url):
    """A command of an image as a server; SIGTERM ends it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return running(process, url, _terminate)


def _terminate(process):
    # unshare forks: its child is the command, the first process of its namespace.
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGTERM)


def test_pipeline_and_page_run_read_only(full_image, broker, folders):
    """The full image makes a history of what its own exporter landed, and shows the page."""
    data, settings = folders
    ports = free_ports(2)
    node = broker.nodes[0]
    document = {
        "clusters": {"shop": {"management": {"url": node.management}, "amqp": {"url": node.amqp}}},
        "landing": {"directory": "/var/lib/ackscope/landing", "rotate": "1s"},
    }
    (settings / "ackscope.yml").write_text(yaml.safe_dump(document))
    serve = [*full_image.config["Entrypoint"], *full_image.config["Cmd"]]
    listen = {"ACKSCOPE_LISTEN": f"127.0.0.1:{ports[0]}"}
    with serving(full_image.read_only(data, settings, *serve, **listen), f"http://127.0.0.1:{ports[0]}/-/ready"):
        eventually(lambda: list((data / "landing").rglob("*.parquet")))
    places = ["--landing", "/var/lib/ackscope/landing", "--rollups", "/var/lib/ackscope/rollups"]
    run(*full_image.read_only(data, settings, "ackscope", "pipeline", "run", *places))
    address = f"127.0.0.1:{ports[1]}"
    page = ["ackscope", "dashboard", "--exporter", "http://127.0.0.1:9", *places[2:], "--listen", address]

    assert list((data / "rollups/_catalog").glob("shop.json"))
    with serving(full_image.read_only(data, settings, *page), f"http://{address}/_stcore/health"):
        assert "<title>" in requests.get(f"http://{address}/", timeout=10).text


def test_every_package_can_be_had_for_arm64(release, uv, tmp_path):
    """There is no arm64 machine here: its packages exist as wheels, but for those that the build stage compiles."""
    (pins,) = release.glob("*-requirements-all.txt")
    plain = tmp_path / "pins.txt"
    plain.write_text("\n".join(re.findall(r"^\S+==\S+", pins.read_text(), re.MULTILINE)) + "\n")
    # pyspark is pure Python in an sdist; the others have C code, for which the build stage has a compiler.
    sources = [word for name in ("pyspark", "hdrhistogram", "python-qpid-proton") for word in ("--no-binary", name)]
    words = [
        "--python-platform",
        "aarch64-manylinux_2_28",
        "--python-version",
        "3.11",
        "--no-deps",
        "--only-binary",
        ":all:",
    ]
    run(uv, "pip", "compile", "--quiet", *words, *sources, plain, "-o", tmp_path / "out.txt")

    assert "gcc" in FILE.read_text().split()

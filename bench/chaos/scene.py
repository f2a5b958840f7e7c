"""A cluster of three nodes with a small shop on it, and everything of ackscope around it, each part restartable."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import requests
import yaml

from ackscope.errors import BrokerError
from bench.exporting import wait_for
from lab.cluster import Lab, start_lab
from lab.demo.prometheus import answers, start_prometheus
from lab.demo.services import Service, Services
from lab.network_link import NetworkLink
from lab.ports import free_ports

CLUSTER, USER = "shop", "observer"
NODES = 3
PARTS = ("exporter", "pipeline", "dashboard", "prometheus")
"""Processes that may be killed and are started again."""

POLL_SECONDS, ROTATE_SECONDS = 5.0, 5.0
LANDING_BYTES = 48_000_000
"""Size of the file system that landing files are written to."""

_START_SECONDS = 120.0


@dataclass(slots=True)
class ChaosScene:
    """What runs.

    Attributes:
        management, amqp: links to the first node.
        exporter, page, prometheus: host and port.
        lives: time of each start of the exporter, and of its end once it ended, seconds since 1970.
    """

    lab: Lab
    services: Services
    folder: Path
    management: NetworkLink
    amqp: NetworkLink
    exporter: str
    page: str
    prometheus: str
    password: str
    lives: list[list[float]] = field(default_factory=list)

    @property
    def landing(self) -> Path:
        """A small file system of its own, so that it can be full."""
        return self.folder / "landing"

    def service(self, name: str) -> Service:
        """Return a running part."""
        return next(each for each in self.services.running if each.name == name)

    def kill(self, name: str) -> None:
        """Send SIGKILL to the process group of a part."""
        service = self.service(name)
        with suppress(ProcessLookupError):
            os.killpg(service.process.pid, signal.SIGKILL)
        service.process.wait()
        self.services.running.remove(service)
        if name == "exporter":
            self.lives[-1].append(time.time())

    def start(self, name: str) -> None:
        """Start a part, as a service manager does; wait for Prometheus only."""
        if name == "exporter":
            self.lives.append([time.time()])
            self.services.start_python(name, "ackscope", "exporter", "--config", str(self.folder / "ackscope.yml"))
        elif name == "pipeline":
            folders = ("--landing", str(self.landing), "--rollups", str(self.folder / "rollups"))
            words = ("ackscope", "pipeline", "stream", *folders, "--master", "local[1]", "--trigger", "10s")
            self.services.start_python(name, *words, nice=5)
        elif name == "dashboard":
            where = ("--exporter", f"http://{self.exporter}", "--rollups", str(self.folder / "rollups"))
            self.services.start_python(name, "ackscope", "dashboard", *where, "--listen", self.page, nice=3)
        else:
            folder = self.folder / f"prometheus-{time.time():.0f}"
            start_prometheus(self.services, folder, listen=self.prometheus, target=self.exporter, nice=5)

    def answers(self, name: str) -> bool:
        """Return whether a part answers; the pipeline is alive."""
        service = next((each for each in self.services.running if each.name == name), None)
        if service is None or service.process.poll() is not None:
            return False
        urls: dict[str, tuple[str, str | None]] = {
            "exporter": (f"http://{self.exporter}/-/ready", None),
            "dashboard": (f"http://{self.page}/_stcore/health", "ok"),
            "prometheus": (f"http://{self.prometheus}/-/ready", None),
        }
        return name not in urls or answers(*urls[name])

    def rotate_password(self) -> None:
        """Give the exporter's user a new password: in the broker first, in the file after two polls."""
        self.password = secrets.token_urlsafe(12)
        _put(self.lab, f"users/{USER}", {"password": self.password, "tags": "administrator"})
        time.sleep(2 * POLL_SECONDS)
        _write_password(self.folder, self.password)


@contextmanager
def scene(broker: str) -> Iterator[ChaosScene]:
    """Start everything and wait until each part answers.

    Raises:
        BrokerError: a part did not start.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-chaos-")))
        stack.enter_context(_small_disk(folder / "landing"))
        lab = stack.enter_context(start_lab(broker, NODES))
        node = lab.nodes[0]
        management, amqp = (NetworkLink(urlsplit(url).port or 0) for url in (node.management, node.amqp))
        stack.callback(management.close)
        stack.callback(amqp.close)
        services = Services(folder)
        stack.callback(services.stop)
        exporter, page, prometheus = (f"127.0.0.1:{port}" for port in free_ports(3))
        made = ChaosScene(
            lab, services, folder, management, amqp, exporter, page, prometheus, secrets.token_urlsafe(12)
        )
        _put(lab, f"users/{USER}", {"password": made.password, "tags": "administrator"})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        _put(lab, f"permissions/{quote('/', safe='')}/{USER}", everything)
        _write_password(folder, made.password)
        _write_configuration(made)
        services.start_python("workload", "lab.workload", "--amqp", lab.nodes[1].amqp)
        for name in PARTS:
            made.start(name)
        for name in ("exporter", "dashboard"):
            wait_for(partial(made.answers, name), name, _START_SECONDS)
        yield made


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={LANDING_BYTES}", "ackscope-chaos", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BrokerError(f"cannot mount a small file system ({done.stderr.strip()}); run it as root")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _put(lab: Lab, path: str, body: dict[str, str]) -> None:
    requests.put(f"{lab.nodes[0].management}/api/{path}", json=body, timeout=10).raise_for_status()


def _write_password(folder: Path, password: str) -> None:
    partial = folder / "password.partial"
    partial.touch(0o600)
    partial.write_text(password)
    partial.replace(folder / "password")


def _write_configuration(made: ChaosScene) -> None:
    login = {"username": USER, "password_file": str(made.folder / "password")}
    document = {
        "listen": made.exporter,
        "clusters": {
            CLUSTER: {
                "management": {"url": f"http://127.0.0.1:{made.management.port}", **login},
                "amqp": {"url": f"amqp://127.0.0.1:{made.amqp.port}", **login},
            }
        },
        "poll": {"interval": f"{POLL_SECONDS:g}s", "budget": 0.2},
        "landing": {
            "directory": str(made.landing),
            "rotate": f"{ROTATE_SECONDS:g}s",
            "max_bytes": LANDING_BYTES // 2,
        },
    }
    (made.folder / "ackscope.yml").write_text(yaml.safe_dump(document))

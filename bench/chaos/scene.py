"""A cluster of three nodes with a small shop on it, and everything of ackscope around it, each part restartable.

Landing files go to a bucket, through a spool on a small file system.
"""

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
from bench.chaos.jumping_clock import JumpingClock, faketime_library
from bench.exporting import wait_for
from lab.cluster import Lab, start_lab
from lab.demo.alertmanager import start_alertmanager
from lab.demo.prometheus import answers, start_prometheus
from lab.demo.services import Service, Services
from lab.network_link import NetworkLink
from lab.ports import free_ports
from lab.s3_server import BUCKET, s3_server

CLUSTER, USER = "shop", "observer"
NODES = 3
PARTS = ("exporter", "pipeline", "dashboard", "prometheus", "alertmanager")
"""Processes that may be killed and are started again."""

POLL_SECONDS, ROTATE_SECONDS = 5.0, 5.0
LANDING = f"s3://{BUCKET}/landing"
SPOOL_BYTES = 48_000_000
"""Size of the file system that landing files are written to before they are uploaded."""

_START_SECONDS = 120.0


@dataclass(slots=True)
class ChaosScene:
    """What runs.

    Attributes:
        links: name -> link: `management` and `amqp` to the first node, `bucket` to the S3 server.
        storage: environment of clients of the S3 server itself.
        exporter, page, prometheus, alertmanager: host and port.
        clock: the wall clock of the exporter and its probes.
        began: when the brokers were started, seconds since 1970.
        lives: time of each start of the exporter, and of its end once it ended, seconds since 1970.
    """

    lab: Lab
    services: Services
    folder: Path
    links: dict[str, NetworkLink]
    storage: dict[str, str]
    exporter: str
    page: str
    prometheus: str
    alertmanager: str
    password: str
    clock: JumpingClock
    began: float
    lives: list[list[float]] = field(default_factory=list)

    @property
    def spool(self) -> Path:
        """A small file system of its own, so that it can be full."""
        return self.folder / "spool"

    @property
    def linked_storage(self) -> dict[str, str]:
        """Environment of clients of the S3 server through its link."""
        return {**self.storage, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.links['bucket'].port}"}

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
        """Start a part, as a service manager does; wait for Prometheus and Alertmanager only."""
        if name == "exporter":
            self.lives.append([time.time()])
            configuration = str(self.folder / "ackscope.yml")
            environ = {**self.linked_storage, **self.clock.environment()}
            self.services.start_python(name, "ackscope", "exporter", "--config", configuration, environ=environ)
        elif name == "pipeline":
            folders = ("--landing", LANDING, "--rollups", str(self.folder / "rollups"))
            words = ("ackscope", "pipeline", "stream", *folders, "--master", "local[1]", "--trigger", "10s")
            self.services.start_python(name, *words, environ=self.linked_storage, nice=5)
        elif name == "alertmanager":
            # Nobody listens to what it sends.
            nowhere = f"http://127.0.0.1:{free_ports(1)[0]}"
            start_alertmanager(self.services, self.folder / name, listen=self.alertmanager, webhook=nowhere)
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
            "alertmanager": (f"http://{self.alertmanager}/-/ready", None),
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
        MissingPart: a program or a library is missing.
        BrokerError: a part did not start.
    """
    with ExitStack() as stack:
        faketime_library()
        began = time.time()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-chaos-")))
        stack.enter_context(_small_disk(folder / "spool"))
        storage = stack.enter_context(s3_server())
        lab = stack.enter_context(start_lab(broker, NODES))
        node = lab.nodes[0]
        targets = {"management": node.management, "amqp": node.amqp, "bucket": storage["AWS_ENDPOINT_URL"]}
        links = {name: NetworkLink(urlsplit(url).port or 0) for name, url in targets.items()}
        for link in links.values():
            stack.callback(link.close)
        services = Services(folder)
        stack.callback(services.stop)
        exporter, page, prometheus, alertmanager = (f"127.0.0.1:{port}" for port in free_ports(4))
        made = ChaosScene(
            lab=lab,
            services=services,
            folder=folder,
            links=links,
            storage=storage,
            exporter=exporter,
            page=page,
            prometheus=prometheus,
            alertmanager=alertmanager,
            password=secrets.token_urlsafe(12),
            clock=JumpingClock(folder / "clock"),
            began=began,
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
        ["mount", "-t", "tmpfs", "-o", f"size={SPOOL_BYTES}", "ackscope-chaos", str(folder)],
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
                "management": {"url": f"http://127.0.0.1:{made.links['management'].port}", **login},
                "amqp": {"url": f"amqp://127.0.0.1:{made.links['amqp'].port}", **login},
            }
        },
        "poll": {"interval": f"{POLL_SECONDS:g}s", "budget": 0.2},
        "landing": {
            "directory": LANDING,
            "spool": str(made.spool / "files"),
            "spool_bytes": SPOOL_BYTES // 2,
            "rotate": f"{ROTATE_SECONDS:g}s",
        },
        "delivery": {
            "directory": str(made.folder / "delivery"),
            "receivers": {"pager": {"alertmanager": {"url": f"http://{made.alertmanager}", "refresh": "5s"}}},
        },
    }
    (made.folder / "ackscope.yml").write_text(yaml.safe_dump(document))

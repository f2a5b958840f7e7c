"""All processes of the demo, started in the order of the data flow and stopped in reverse order."""

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from ackscope import manifest
from lab.cluster import Lab, start_lab
from lab.demo.prometheus import answers, start_prometheus
from lab.demo.services import Service, ServiceFailed, Services
from lab.node import NOTHING, Extra
from lab.ports import free_ports

CLUSTER = "demo"
_FIRST_POLL, _SPARK_START, _PAGE_START, _FAULT = 60.0, 180.0, 60.0, 60.0


@dataclass(slots=True)
class Stack:
    """The running demo: addresses (host:port for `exporter`, URLs for the others) and folders."""

    lab: Lab
    services: Services
    folder: Path
    exporter: str
    dashboard: str
    prometheus: str

    @property
    def landing(self) -> Path:
        """The landing folder of the exporter."""
        return self.folder / "landing"

    @property
    def rollups(self) -> Path:
        """The rollup folder of the pipeline."""
        return self.folder / "rollups"

    def get(self, path: str) -> dict[str, Any]:
        """Return a JSON document of the exporter; empty if it does not respond."""
        try:
            document: dict[str, Any] = requests.get(f"http://{self.exporter}{path}", timeout=5).json()
        except (requests.RequestException, ValueError):
            return {}
        return document

    def inject(self, fault: str) -> dict[str, Any]:
        """Inject a fault and keep it in effect; returns `{"fault", "rule", "subject"}`."""
        node = self.lab.nodes[0]
        service = self.services.start_python(
            f"fault-{fault}",
            "lab.faults",
            fault,
            "--amqp",
            node.amqp,
            "--management",
            node.management,
            "--lab",
            str(self.lab.folder),
            stdout=subprocess.PIPE,
        )
        line = _first_line(service, _FAULT)
        document: dict[str, Any] = json.loads(line)
        return document


def _first_line(service: Service, timeout: float) -> bytes:
    stdout = service.process.stdout
    if stdout is None:
        raise ServiceFailed(f"{service.name} was started without a pipe")
    deadline, line = time.monotonic() + timeout, b""
    while not line.endswith(b"\n"):
        if time.monotonic() > deadline:
            raise ServiceFailed(f"{service.name}: fault not in effect after {timeout:.0f} s:\n{service.tail()}")
        readable, _, _ = select.select([stdout], [], [], 0.5)
        if readable:
            piece = os.read(stdout.fileno(), 65536)
            if not piece:
                service.process.wait(5)
                service.check()
            line += piece
    return line


def _exporter_config(folder: Path, lab: Lab, listen: str) -> Path:
    node = lab.nodes[0]
    config = folder / "ackscope.yml"
    config.touch(mode=0o600)
    config.write_text(
        yaml.safe_dump(
            {
                "listen": listen,
                "clusters": {CLUSTER: {"management": {"url": node.management}, "amqp": {"url": node.amqp}}},
                "poll": {"interval": "5s", "budget": 0.2},
                "landing": {"directory": str(folder / "landing"), "rotate": "5s"},
                "triage": {"file": str(folder / "triage.json")},
                "history": {"rollups": str(folder / "rollups"), "every": "10s"},
                # Faster than in production, so that two minutes give enough data.
                "probes": {"confirm": {"rate": 20}, "delivery": {"rate": 5}},
            }
        )
    )
    return config


@contextlib.contextmanager
def running_stack(*, broker: str, nodes: int = 1, extra: Extra = NOTHING) -> Iterator[Stack]:
    """Start everything, yield the stack once every part responds; at the end stop everything and delete its files.

    Raises:
        MissingPart: a program is missing.
        ServiceFailed: a part did not start; the message holds the end of its log.
    """
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-demo-")))
        services = Services(folder)
        lab = cleanup.enter_context(start_lab(broker=broker, nodes=nodes, tied=True, extra=extra))
        cleanup.callback(services.stop)
        exporter, page, prometheus = (f"127.0.0.1:{port}" for port in free_ports(3))
        stack = Stack(lab, services, folder, exporter, f"http://{page}", f"http://{prometheus}")
        (folder / "landing").mkdir()
        services.start_python("workload", "lab.workload", "--amqp", lab.nodes[0].amqp)
        config = _exporter_config(folder, lab, exporter)
        watcher = services.start_python("exporter", "ackscope", "exporter", "--config", str(config))
        roots = ("--rollups", str(stack.rollups))
        spark = services.start_python(
            "pipeline", "ackscope", "pipeline", "stream", "--landing", str(stack.landing), *roots, grace=30
        )
        web = services.start_python(
            "dashboard", "ackscope", "dashboard", "--exporter", f"http://{exporter}", *roots, "--listen", page
        )
        watcher.wait_until(lambda: answers(f"http://{exporter}/-/ready"), "a response from /-/ready", _FIRST_POLL)
        start_prometheus(services, folder / "prometheus", listen=prometheus, target=exporter)
        web.wait_until(lambda: answers(f"http://{page}/_stcore/health", "ok"), "a response", _PAGE_START)
        spark.wait_until(lambda: bool(manifest.clusters(stack.rollups)), "a first rollup", _SPARK_START)
        yield stack

"""All processes of the demo, started in the order of the data flow and stopped in reverse order."""

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from ackscope import format as fmt
from ackscope import manifest
from lab.cluster import Lab, start_lab
from lab.demo.cores import CoreSharing, move, share_this_machine
from lab.demo.prometheus import answers, start_prometheus
from lab.demo.services import Service, ServiceFailed, Services
from lab.node import NOTHING, Extra
from lab.ports import free_ports

CLUSTER = "demo"
_NOTES = "notes.jsonl"
_SPARK_SETTINGS = Path(__file__).parent / "spark"
_FIRST_POLL, _SPARK_START, _PAGE_START, _FAULT = 120.0, 480.0, 120.0, 60.0
_NICE_DASHBOARD, _NICE_PROMETHEUS, _NICE_SPARK = 3, 10, 5
"""By how much the priority of each is lower than that of the broker and the exporter."""


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

    @property
    def notes(self) -> Path:
        """The file with the notes of the timeline."""
        return self.folder / _NOTES

    def note(self, text: str, at: float) -> None:
        """Add a note to the timeline, in the format of the dashboard; `at` is in seconds since 1970."""
        note = {"cluster": CLUSTER, "at": at, "written": at, "author": "demo", "text": text}
        with self.notes.open("a") as file:
            file.write(json.dumps(note) + "\n")

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
        service.may_end = True
        document: dict[str, Any] = json.loads(line)
        return document


def _first_line(service: Service, timeout: float) -> bytes:
    stdout = service.process.stdout
    if stdout is None:
        raise ServiceFailed(f"{service.name} was started without a pipe")
    deadline, line = time.monotonic() + timeout, b""
    while not line.endswith(b"\n"):
        if time.monotonic() > deadline:
            raise ServiceFailed(f"{service.name}: fault not in effect after {timeout:.0f} s:").with_log(service.tail())
        readable, _, _ = select.select([stdout], [], [], 0.5)
        if readable:
            piece = os.read(stdout.fileno(), 65536)
            if not piece:
                service.process.wait(5)
                service.check()
            line += piece
    return line


def _exporter_config(folder: Path, lab: Lab, listen: str, sharing: CoreSharing) -> Path:
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
                "probes": {
                    # Faster than in production, so that two minutes give enough data.
                    "confirm": {"rate": 20},
                    "delivery": {"rate": 5},
                    "priority": sharing.priority,
                    "realtime": sharing.realtime,
                    "cores": list(sharing.probes),
                },
            }
        )
    )
    return config


@contextlib.contextmanager
def running_stack(
    *, broker: str, nodes: int = 1, extra: Extra = NOTHING, step: Callable[[str], None] = lambda _: None
) -> Iterator[Stack]:
    """Start everything, yield the stack once every part responds; at the end stop everything and delete its files.

    Args:
        broker: version of RabbitMQ.
        nodes: number of its nodes.
        extra: what a fault needs of the broker.
        step: called with what is being started or waited for, in up to 68 characters.

    Raises:
        MissingPart: a program is missing.
        ServiceFailed: a part did not start; the message holds the end of its log.
    """
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="ackscope-demo-")))
        services, sharing = Services(folder), share_this_machine()
        cleanup.callback(services.stop)
        if sharing.lacking:
            step(f"without {sharing.lacking}: probes may be doubtful under load")
        exporter, page, prometheus = (f"127.0.0.1:{port}" for port in free_ports(3))
        landing, rollups = folder / "landing", folder / "rollups"
        landing.mkdir()
        # Spark takes the longest and needs the landing folder only.
        step("Spark and the dashboard: starting in the background")
        spark = _start_spark(services, landing, rollups)
        web = services.start_python(
            "dashboard",
            *("ackscope", "dashboard", "--exporter", f"http://{exporter}", "--rollups", str(rollups)),
            *("--notes", str(folder / _NOTES), "--listen", page),
            cores=sharing.others,
            nice=_NICE_DASHBOARD,
        )
        step(f"RabbitMQ: starting {fmt.plural(nodes, 'node')}")
        lab = cleanup.enter_context(start_lab(broker=broker, nodes=nodes, tied=True, extra=extra))
        # Before the broker stops, so that no part reports an unreachable one.
        cleanup.callback(services.stop)
        stack = Stack(lab, services, folder, exporter, f"http://{page}", f"http://{prometheus}")
        step(f"RabbitMQ {lab.broker} is up; starting a small shop as workload")
        services.start_python("workload", "lab.workload", "--amqp", lab.nodes[0].amqp)
        step("exporter and probes: waiting for the first poll")
        config = _exporter_config(folder, lab, exporter, sharing)
        watcher = services.start_python(
            "exporter", "ackscope", "exporter", "--config", str(config), cores=sharing.others
        )
        watcher.wait_until(lambda: answers(f"http://{exporter}/-/ready"), "a response from /-/ready", _FIRST_POLL)
        step("Prometheus: waiting until it is ready")
        start_prometheus(
            services,
            folder / "prometheus",
            listen=prometheus,
            target=exporter,
            cores=sharing.others,
            nice=_NICE_PROMETHEUS,
        )
        step("dashboard: waiting for a response")
        web.wait_until(lambda: answers(f"http://{page}/_stcore/health", "ok"), "a response", _PAGE_START)
        step(f"dashboard is up, you can open it: http://{page}")
        step("Spark: waiting for the first minutes of history, the longest step")
        spark.wait_until(
            lambda: bool(manifest.clusters(rollups)),
            "a first rollup",
            _SPARK_START,
            lambda: step("Spark: still working; the dashboard shows the present already"),
        )
        # Only now: it would start at a fraction of its speed.
        move(spark.process.pid, sharing.others, _NICE_SPARK)
        yield stack


def _start_spark(services: Services, landing: Path, rollups: Path) -> Service:
    """The pipeline in one thread, with batches and reports often enough for a short demo."""
    return services.start_python(
        "pipeline",
        *("ackscope", "pipeline", "stream", "--landing", str(landing), "--rollups", str(rollups)),
        *("--master", "local[1]", "--trigger", "10s", "--analyse-every", "2m"),
        environ=spark_environ(),
        grace=30,
    )


def spark_environ() -> dict[str, str]:
    """Return the environment in which Spark interprets its queries; empty if the user has settings of Spark."""
    return {} if "SPARK_CONF_DIR" in os.environ else {"SPARK_CONF_DIR": str(_SPARK_SETTINGS)}

"""Setup of the benchmarks: an exporter of a replayed broker, real probes, a month of history, and the dashboard."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from ackscope.errors import BrokerError
from bench.bench import progress
from bench.dashboard import history
from bench.exporter.recorded import record
from bench.exporter.recording import Recording, recording_proxy
from bench.exporter.replay import replaying
from bench.exporting import Exporter, end_process, exporting_cluster, wait_for
from lab.cluster import start_lab
from lab.ports import free_ports

CLUSTER = "bench"
_TIMEOUT_SECONDS = 300.0
# CPU share of polling: ten times the default, so that everything is polled within a minute.
_BUDGET = 0.1

# The recorded queues have no consumers: with the default thresholds, thousands of them would become findings.
_THRESHOLDS = {"early": 86400, "consumers": {"no_consumer_growing": 86400, "no_consumer_quiet": 86400}}


@dataclass(frozen=True, slots=True)
class DashboardScene:
    """The running setup.

    Attributes:
        broker: RabbitMQ version of the recording.
        page: process ID of the dashboard.
        url: URL of the dashboard.
        empty: process ID and URL of an empty page, served with the same options.
        requests: paths that the dashboard requested from the exporter; grows.
        findings: number of findings at the start.
        rollups: bytes of the history files.
    """

    broker: str
    exporter: Exporter
    page: int
    url: str
    empty: tuple[int, str]
    requests: list[str] = field(repr=False)
    findings: int
    rollups: int


def cpu(pid: int) -> float:
    """CPU seconds of a process without children so far, with the precision of the kernel.

    Raises:
        OSError: the process does not exist.
    """
    # The CPU clock of another process, by the formula of clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def scene(version: str, queues: int, sick: int, days: int) -> Iterator[DashboardScene]:
    """Start the setup; `sick` of every 100 queues have a finding.

    Raises:
        BrokerError: a part did not start.
    """
    recording, broker = record(version)
    for number in range(sick):
        for listed in (recording.queues, recording.totals):
            listed[number]["state"] = "crashed"
    with (
        tempfile.TemporaryDirectory(prefix="ackscope-bench-") as folder,
        start_lab(version) as lab,
    ):
        path, rollups = Path(folder) / "recording.json", Path(folder) / "rollups"
        recording.save(path)
        progress(f"writing {days} days of history, {queues} queues on the last day")
        size = history.write(rollups, CLUSTER, queues, time.time(), days)
        with replaying(path, queues) as base:
            cluster = {"management": {"url": base}, "amqp": {"url": lab.nodes[0].amqp}}
            root = {"poll": {"budget": _BUDGET}, "diagnosis": _THRESHOLDS}
            requested: list[str] = []
            with (
                exporting_cluster(cluster, root) as exporter,
                recording_proxy(exporter.url, Recording(), requested) as proxy,
                dashboard(proxy, rollups) as (page, url),
                _empty() as empty,
            ):
                expected = queues * sick // len(recording.queues)
                progress(f"waiting for {expected} findings of the exporter")
                found = wait_for(lambda: _enough(exporter, expected), f"{expected} findings", _TIMEOUT_SECONDS)
                yield DashboardScene(broker, exporter, page, url, empty, requested, found, size)


def findings(exporter: Exporter) -> int:
    """Return the number of current findings, without consequences."""
    return sum(len(it["findings"]) for it in exporter.get("/api/v1/findings").json()["clusters"])


def _enough(exporter: Exporter, expected: int) -> int | None:
    time.sleep(1)
    found = findings(exporter)
    return found if found >= expected else None


@contextmanager
def dashboard(exporter: str, rollups: Path) -> Iterator[tuple[int, str]]:
    """The dashboard as users run it: process ID and URL.

    Raises:
        BrokerError: it did not start.
    """
    port = free_ports(1)[0]
    words = ["-m", "ackscope", "dashboard", "--exporter", exporter, "--rollups", str(rollups)]
    with _served([*words, "--listen", f"127.0.0.1:{port}"], port) as pid:
        yield pid, f"http://127.0.0.1:{port}"


@contextmanager
def _empty() -> Iterator[tuple[int, str]]:
    port = free_ports(1)[0]
    with _served(["-m", "bench.dashboard.empty", str(port)], port) as pid:
        yield pid, f"http://127.0.0.1:{port}"


@contextmanager
def _served(words: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def healthy() -> bool:
        if process.poll() is not None:
            raise BrokerError(f"{' '.join(words[:3])} exited with {process.returncode}")
        try:
            return requests.get(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).ok
        except requests.RequestException:
            return False

    try:
        wait_for(healthy, "a page's server", _TIMEOUT_SECONDS)
        yield process.pid
    finally:
        end_process(process)

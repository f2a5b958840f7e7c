"""What the page is measured on: an exporter over a replayed broker, real probes, a month of history, and the page."""

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
from bench.bench import tell
from bench.dashboard import history
from bench.exporter.recorded import record
from bench.exporter.recording import Recording, recording_proxy
from bench.exporter.replay import replaying
from bench.exporting import Exporter, end_process, exporting_cluster, wait_for
from lab.cluster import start_lab
from lab.ports import free_ports

CLUSTER = "bench"
_WITHIN = 300.0
_BUDGET = 0.1
"""Share of a core that polling may take: ten times the default, so that all is seen before a minute is over."""

_PATIENT = {"early": 86400, "consumers": {"no_consumer_growing": 86400, "no_consumer_quiet": 86400}}
"""Queues of the recorded broker wait without a consumer: after minutes thousands of them would be findings, too."""


@dataclass(frozen=True, slots=True)
class Scene:
    """All of it, at work.

    Attributes:
        broker: version whose shapes are replayed.
        page: process id of the page's server.
        url: its address.
        empty: process id and address of a page with nothing on it, served with the same options.
        asked: what the page asked of the exporter, every path; it grows.
        rollups: bytes of the history's files.
    """

    broker: str
    exporter: Exporter
    page: int
    url: str
    empty: tuple[int, str]
    asked: list[str] = field(repr=False)
    findings: int
    rollups: int


def cpu(pid: int) -> float:
    """Processor seconds so far of a process without children, as exact as the kernel counts.

    Raises:
        OSError: it is gone.
    """
    # The clock of another process, by the formula of clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


@contextmanager
def scene(version: str, queues: int, sick: int, days: int) -> Iterator[Scene]:
    """Build it; `sick` queues in a hundred have a finding each.

    Raises:
        BrokerError: a part of it did not start.
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
        tell(f"{days} days of history, {queues} queues on the last")
        size = history.write(rollups, CLUSTER, queues, time.time(), days)
        with replaying(path, queues) as base:
            cluster = {"management": {"url": base}, "amqp": {"url": lab.nodes[0].amqp}}
            root = {"poll": {"budget": _BUDGET}, "diagnosis": _PATIENT}
            asked: list[str] = []
            with (
                exporting_cluster(cluster, root) as exporter,
                recording_proxy(exporter.url, Recording(), asked) as seen,
                dashboard(seen, rollups) as (page, url),
                _empty() as empty,
            ):
                wanted = queues * sick // len(recording.queues)
                tell(f"the exporter reads; {wanted} findings are awaited")
                found = wait_for(lambda: _enough(exporter, wanted), f"{wanted} findings", _WITHIN)
                yield Scene(broker, exporter, page, url, empty, asked, found, size)


def findings(exporter: Exporter) -> int:
    """How many it tells now, those that hang under another not counted."""
    return sum(len(it["findings"]) for it in exporter.get("/api/v1/findings").json()["clusters"])


def _enough(exporter: Exporter, wanted: int) -> int | None:
    time.sleep(1)
    found = findings(exporter)
    return found if found >= wanted else None


@contextmanager
def dashboard(exporter: str, rollups: Path) -> Iterator[tuple[int, str]]:
    """The page as users run it: its process id and its address.

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
            raise BrokerError(f"{' '.join(words[:3])} ended by itself with {process.returncode}")
        try:
            return requests.get(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).ok
        except requests.RequestException:
            return False

    try:
        wait_for(healthy, "a page's server", _WITHIN)
        yield process.pid
    finally:
        end_process(process)

"""Ackscope and its peers as processes that serve requests, with the time and memory of each."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ackscope.errors import DataError
from bench.background import BackgroundThread
from bench.bench import progress
from bench.pipeline.peers import peers_python
from bench.usage import MB, cpu_seconds

OURS = "ackscope"
PEERS = ("duckdb", "polars", "pandas")
# Modules that the peers run for each of the two rollups.
MESSAGES, QUEUES = "bench.pipeline.contenders", "bench.pipeline.queue_contenders"

_OURS = "bench.pipeline.ours"

_LOOK = 0.1


@dataclass(slots=True)
class Run:
    """One request: seconds, CPU seconds, peak memory of the processes in bytes.

    Attributes:
        sums: values that must be equal for all engines.
    """

    wall: float
    cpu: float
    peak: int
    answer: dict[str, Any] = field(default_factory=dict)
    sums: tuple[int, ...] = ()


class Worker:
    """A process that serves requests."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name, self._process = name, process

    def ask(self, request: dict[str, Any]) -> Run:
        """Send one request and wait for the result.

        Raises:
            DataError: the process ended instead.
        """
        before, began = cpu_seconds(self._process.pid), time.monotonic()
        with _Peak(self._process.pid) as peak:
            if self._process.stdin is None or self._process.stdout is None:
                raise AssertionError("both are pipes")
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise DataError(f"{self._name} ended unexpectedly; see its output above")
        wall = time.monotonic() - began
        return Run(wall, cpu_seconds(self._process.pid) - before, peak.bytes, json.loads(line))


@contextmanager
def working(name: str, peers: str = MESSAGES) -> Iterator[Worker]:
    """The process of an engine, for a `with` block; `peers` is the module of peers.

    Raises:
        MissingPart: the peers cannot be installed.
    """
    words = [sys.executable, "-m", _OURS] if name == OURS else [str(peers_python()), "-m", peers, name]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Worker(name, process)
    finally:
        # The process ends when its stdin closes.
        process.communicate()


@dataclass(slots=True)
class Engines:
    """Engines to compare; the first request to each starts its process, and is its cold run.

    Attributes:
        names: in the order in which they take turns.
        peers: the module that peers run.
        folder: for output, removed after each run.
        stack: ends them.
    """

    names: Sequence[str]
    peers: str
    folder: Path
    stack: ExitStack
    _workers: dict[str, Worker] = field(default_factory=dict)

    def compare(
        self,
        what: str,
        request: Callable[[str], dict[str, Any]],
        sums: Callable[[Run], tuple[int, ...]],
        warm: int,
        kinds: Sequence[str] = ("warm",),
    ) -> dict[str, dict[str, list[Run]]]:
        """Return runs by engine and kind: cold ones for the first request, then `warm` runs of each kind in turn."""
        found = {name: {kind: list[Run]() for kind in ("cold", *kinds)} for name in self.names}

        def ask(name: str, kind: str, number: int) -> Run:
            progress(f"{name}: {what}, {kind}, {number + 1}")
            to = self.folder / name / f"{kind}-{number}"
            run = self._workers[name].ask(request(kind) | {"to": str(to)})
            run.sums = sums(run)
            progress(f"{name}: {run.wall:.1f} s, {run.cpu:.1f} s of processor, {run.peak / MB:.0f} MB, sums {run.sums}")
            shutil.rmtree(to)
            return run

        for name in self.names:
            if name not in self._workers:
                self._workers[name] = self.stack.enter_context(working(name, self.peers))
                found[name]["cold"].append(ask(name, "cold", 0))
        for number in range(warm):
            for name in self.names:
                for kind in kinds:
                    found[name][kind].append(ask(name, kind, number))
        return found


class _Peak(BackgroundThread):
    """Measures the peak memory of a process and its children while a block runs."""

    def __init__(self, pid: int) -> None:
        super().__init__("memory")
        self.bytes = 0
        self._process = psutil.Process(pid)

    def _run(self) -> None:
        while not self._end.wait(_LOOK):
            total = 0
            with suppress(psutil.Error):
                for process in (self._process, *self._process.children(recursive=True)):
                    with suppress(psutil.Error):
                        total += process.memory_info().rss
            self.bytes = max(self.bytes, total)


def roll_up(landing: Path, to: Path, times: int = 1) -> tuple[list[Run], dict[str, int]]:
    """Roll up all minutes several times in a fresh process of ackscope. Returns the runs, and bytes by table."""
    with working(OURS) as worker:
        runs = [
            worker.ask({"landing": str(landing), "to": str(to / str(number)), "distinct": True})
            for number in range(times)
        ]
    sizes = {
        name: sum(path.stat().st_size for path in (to / "0" / name).rglob("*.parquet"))
        for name in runs[0].answer["rows"]
    }
    return runs, sizes

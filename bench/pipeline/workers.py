"""Ackscope and its peers as processes that answer lines, with what each answer took of time and memory."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import psutil

from ackscope.errors import DataError
from bench.pipeline.peers import peers_python
from bench.usage import cpu_seconds

OURS = "ackscope"
PEERS = ("duckdb", "polars", "pandas")

_LOOK = 0.1


@dataclass(slots=True)
class Run:
    """One answer: seconds, processor seconds, most bytes that the processes held at once."""

    wall: float
    cpu: float
    peak: int
    answer: dict[str, Any] = field(default_factory=dict)

    def sums(self) -> list[int]:
        """What must be equal for all engines."""
        return [self.answer[name] for name in ("messages", "counted", "nanoseconds")]


class Worker:
    """A process that answers lines."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name, self._process = name, process

    def ask(self, asked: dict[str, Any]) -> Run:
        """Ask for one rollup, and wait for it.

        Raises:
            DataError: the process ended instead.
        """
        before, began = cpu_seconds(self._process.pid), time.monotonic()
        with _Peak(self._process.pid) as peak:
            if self._process.stdin is None or self._process.stdout is None:
                raise AssertionError("both are pipes")
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise DataError(f"{self._name} gave up in the middle; what it said stands above")
        wall = time.monotonic() - began
        return Run(wall, cpu_seconds(self._process.pid) - before, peak.bytes, json.loads(line))


@contextmanager
def working(name: str) -> Iterator[Worker]:
    """The process of an engine, until the block ends.

    Raises:
        MissingPart: the peers cannot be had.
    """
    if name == OURS:
        words = [sys.executable, "-m", "bench.pipeline.ours"]
    else:
        words = [str(peers_python()), "-m", "bench.pipeline.contenders", name]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Worker(name, process)
    finally:
        # The end of its stdin is the end of its work.
        process.communicate()


class _Peak:
    """The most memory that a process and its children hold at once, while a block runs."""

    def __init__(self, pid: int) -> None:
        self.bytes = 0
        self._process, self._done = psutil.Process(pid), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(_LOOK):
            total = 0
            with suppress(psutil.Error):
                for process in (self._process, *self._process.children(recursive=True)):
                    with suppress(psutil.Error):
                        total += process.memory_info().rss
            self.bytes = max(self.bytes, total)


def roll_up(landing: Path, to: Path, times: int = 1) -> tuple[list[Run], dict[str, int]]:
    """Let a fresh process of ackscope make all minutes so many times; what each took, and the bytes of each table."""
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

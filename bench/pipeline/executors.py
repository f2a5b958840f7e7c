"""A Spark cluster of two workers: what passes through the driver, who works, and clusters side by side."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from ackscope import manifest
from ackscope.errors import DataError
from bench.background import BackgroundThread
from bench.bench import Bench, Document, progress
from bench.pipeline.fleet import Fleet
from bench.pipeline.standalone import cluster
from bench.pipeline.writing import write_fleet
from bench.tables import table
from bench.usage import MB

_STEP = 15
_LOOK = 0.1
_JOB = "bench.pipeline.executor_job"


@dataclass(frozen=True, slots=True)
class ExecutorRun:
    """One run, with a warm driver and warm executors.

    Attributes:
        seconds: wall-clock time.
        rows: rows of rollups.
        results: bytes of results that tasks sent to the driver.
        driver_cpu, executor_cpu: CPU seconds of their processes, Java and Python.
    """

    seconds: float
    rows: int
    results: int
    driver_cpu: float
    executor_cpu: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--queues", type=int, default=10_000, help="of the cluster that is rolled up (default 10000)")
    parser.add_argument("--hours", type=int, default=3, help="of it (default 3)")
    parser.add_argument("--clusters", type=int, default=8, help="rolled up side by side (default 8; 0: left out)")
    parser.add_argument("--small", type=int, default=200, help="queues of each of these (default 200)")


def measure(args: argparse.Namespace) -> Document:
    """Roll up one large cluster in two ways, then many small ones in two ways, all on the same workers."""
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as name:
        folder = Path(name)
        progress(f"landing {args.hours} hours of {args.queues} queues, and of {args.clusters} times {args.small}")
        write_fleet(folder / "large", Fleet("large", queues=args.queues, days=1, incidents=0), args.hours, _STEP, 1)
        for number in range(args.clusters):
            fleet = Fleet(f"small-{number}", queues=args.small, days=1, incidents=0, seed=number)
            write_fleet(folder / "small", fleet, args.hours, _STEP, 1)
        runs = {
            "warm-up": ("small" if args.clusters else "large", "executors", args.clusters or 1),
            "driver": ("large", "driver", 1),
            "executors": ("large", "executors", 1),
        }
        if args.clusters:
            runs |= {"in turn": ("small", "executors", 1), "side by side": ("small", "executors", args.clusters)}
        found = _measure(folder, runs)
        digests = {name: _digests(folder / name) for name in runs}
    small = [digests[name] for name in runs if runs[name][0] == "small"]
    return {
        "queues": args.queues,
        "hours": args.hours,
        "clusters": args.clusters,
        "small": args.small,
        "runs": {name: asdict(it) for name, it in found.items()},
        "files": len(digests["executors"]),
        "same": digests["driver"] == digests["executors"] and all(it == small[0] for it in small),
    }


def _measure(folder: Path, runs: Mapping[str, tuple[str, str, int]]) -> dict[str, ExecutorRun]:
    """Do all runs, one after the other, with one driver; each is a landing folder, who writes, and clusters at once."""
    logs = folder / "events"
    logs.mkdir()
    # The event log has the size of each task's result.
    settings = {"enabled": "true", "dir": f"file:{logs}", "compress": "false", "rolling.enabled": "false"}
    text = "".join(f"spark.eventLog.{name} {value}\n" for name, value in settings.items())
    (folder / "spark-defaults.conf").write_text(text)
    answers: dict[str, tuple[dict[str, Any], float, float]] = {}
    with cluster(folder) as master:
        process = subprocess.Popen(
            [sys.executable, "-m", _JOB, master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SPARK_CONF_DIR": str(folder)},
        )
        try:
            with _Processors(process.pid) as usage:
                for name, (landing, how, at_once) in runs.items():
                    progress(f"{name}: {landing}, files written by {how}, {at_once} clusters at once")
                    request = {"landing": str(folder / landing), "rollups": str(folder / name)}
                    before = usage.driver, usage.executors
                    answer = _ask(process, request | {"how": how, "at_once": at_once})
                    answers[name] = (answer, usage.driver - before[0], usage.executors - before[1])
                    progress(f"{answers[name]}")
        finally:
            # The driver ends when its stdin closes.
            process.communicate()
    results = list(_results(logs))
    return {
        name: ExecutorRun(
            it["ended"] - it["began"],
            it["rows"],
            sum(size for at, size in results if it["began"] <= at <= it["ended"]),
            driver,
            executors,
        )
        for name, (it, driver, executors) in answers.items()
    }


def _ask(process: subprocess.Popen[str], request: Mapping[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    process.stdin.write(json.dumps(dict(request)) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise DataError(f"{_JOB} ended unexpectedly; see its output above")
    answer: dict[str, Any] = json.loads(line)
    return answer


class _Processors(BackgroundThread):
    """CPU seconds of the driver, and of everything that Spark's workers start, while a block runs."""

    def __init__(self, driver: int) -> None:
        super().__init__("processors")
        self._driver = psutil.Process(driver)
        self._workers = [it for it in psutil.Process().children(recursive=True) if _is_worker(it)]
        self._seen: dict[str, dict[tuple[int, float], float]] = {"driver": {}, "executors": {}}

    @property
    def driver(self) -> float:
        """CPU seconds of the driver: its Python and its Java."""
        return sum(self._seen["driver"].values())

    @property
    def executors(self) -> float:
        """CPU seconds of the executors: Java and Python workers."""
        return sum(self._seen["executors"].values())

    def _run(self) -> None:
        while not self._end.wait(_LOOK):
            with suppress(psutil.Error):
                self._look("driver", [self._driver, *self._driver.children(recursive=True)])
            for worker in self._workers:
                with suppress(psutil.Error):
                    self._look("executors", worker.children(recursive=True))

    def _look(self, who: str, processes: list[psutil.Process]) -> None:
        for process in processes:
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._seen[who][process.pid, process.create_time()] = times.user + times.system


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "org.apache.spark.deploy.worker.Worker" in process.cmdline()
    except psutil.Error:
        return False


def _results(logs: Path) -> Iterator[tuple[float, int]]:
    """When each task ended, seconds since 1970, and the bytes of its result, from the event log."""
    for path in logs.iterdir():
        with path.open() as lines:
            for line in lines:
                if '"SparkListenerTaskEnd"' in line:
                    event = json.loads(line)
                    size = (event.get("Task Metrics") or {}).get("Result Size", 0)
                    yield event["Task Info"]["Finish Time"] / 1000, size


def _digests(rollups: Path) -> dict[str, str]:
    """Every file of every cluster, by name, which has the digest of its content."""
    return {
        f"{name}/{it.path}": json.dumps(dict(it.parts))
        for one in manifest.clusters(rollups)
        for name, files in manifest.read(rollups, one).tables.items()
        for it in files
    }


def lines(document: Document) -> list[str]:
    """Both tables."""
    head = ("", "rows", "s", "to driver, MB", "driver CPU", "executor CPU")
    runs = document["runs"]
    names = {"driver": "the driver writes", "executors": "executors write"}
    driver, executors = runs["driver"], runs["executors"]
    text = [
        f"{document['hours']} hours of {document['queues']} queues, two workers of one core each:",
        "",
        *table(head, [_row(words, runs[name]) for name, words in names.items()]),
        "",
        f"to the driver: {driver['results'] / max(1, executors['results']):.0f} times less",
        f"CPU of the driver: {executors['driver_cpu'] / max(0.1, executors['executor_cpu']):.2f} of the executors'",
    ]
    if document["clusters"]:
        small = {"in turn": "one after another", "side by side": "side by side"}
        text += [
            "",
            f"{document['clusters']} clusters of {document['small']} queues, executors write:",
            "",
            *table(head, [_row(words, runs[name]) for name, words in small.items()]),
            "",
            f"side by side: {runs['in turn']['seconds'] / runs['side by side']['seconds']:.2f} times as fast",
        ]
    return [*text, f"the same {document['files']} files both ways: {'yes' if document['same'] else 'NO'}"]


def _row(name: str, it: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        name,
        f"{it['rows']:,}",
        f"{it['seconds']:.1f}",
        f"{it['results'] / MB:.2f}",
        f"{it['driver_cpu']:.0f} s",
        f"{it['executor_cpu']:.0f} s",
    )


BENCH = Bench(
    "executors",
    "a Spark cluster of two workers: what passes through the driver, and clusters side by side",
    measure,
    lines,
    add_arguments,
    short=("--queues", "500", "--hours", "1", "--clusters", "4", "--small", "20"),
    room="pipeline",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())

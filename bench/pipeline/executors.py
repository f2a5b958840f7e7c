"""A Spark cluster of two workers: what passes through the driver, who works, and clusters side by side."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from ackscope import manifest
from ackscope.errors import DataError
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
class Measured:
    """One run.

    Attributes:
        seconds: of the work, without the start of Java and executors.
        rows: rows of rollups.
        results: bytes of results that tasks sent to the driver.
        driver_cpu, executor_cpu: CPU seconds of their processes, Java and Python, with their starts.
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
        with cluster(folder) as master:
            found = {how: _run(folder, "large", master, how, 1) for how in ("driver", "executors")}
            many = {
                at_once: _run(folder, "small", master, "executors", at_once)
                for at_once in ((1, args.clusters) if args.clusters else ())
            }
        progress("the same in one process")
        _job(folder, "large", "local[2]", "driver", 1, folder / "large-local")
        local = _digests(folder / "large-local")
        same = {how: _digests(folder / f"large-{how}-1") == local for how in found}
        same |= {f"{at_once} at once": _digests(folder / f"small-executors-{at_once}") for at_once in many}
    sets = [it for it in same.values() if not isinstance(it, bool)]
    return {
        "queues": args.queues,
        "hours": args.hours,
        "clusters": args.clusters,
        "small": args.small,
        "large": {how: asdict(it) for how, it in found.items()},
        "many": {str(at_once): asdict(it) for at_once, it in many.items()},
        "files": len(local),
        "same": all(it for it in same.values() if isinstance(it, bool)) and all(it == sets[0] for it in sets),
    }


def _run(folder: Path, landing: str, master: str, how: str, at_once: int) -> Measured:
    progress(f"{landing}: files written by {how}, {at_once} clusters at once")
    logs = folder / f"events-{landing}-{how}-{at_once}"
    logs.mkdir()
    seen, usage = _job(folder, landing, master, how, at_once, folder / f"{landing}-{how}-{at_once}", logs)
    found = Measured(seen["seconds"], seen["rows"], _results(logs), usage.driver, usage.executors)
    progress(f"{found}")
    return found


def _job(
    folder: Path, landing: str, master: str, how: str, at_once: int, rollups: Path, logs: Path | None = None
) -> tuple[dict[str, Any], "_Processors"]:
    environment = {**os.environ}
    if logs is not None:
        # The event log has the size of each task's result.
        settings = {"enabled": "true", "dir": f"file:{logs}", "compress": "false", "rolling.enabled": "false"}
        text = "".join(f"spark.eventLog.{name} {value}\n" for name, value in settings.items())
        (logs / "spark-defaults.conf").write_text(text)
        environment["SPARK_CONF_DIR"] = str(logs)
    words = [sys.executable, "-m", _JOB, str(folder / landing), str(rollups), master, how, str(at_once)]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process,
        _Processors(process.pid) as usage,
    ):
        output, _ = process.communicate()
    if process.returncode:
        raise DataError(f"{_JOB} ended with {process.returncode}; see its output above")
    return json.loads(output.splitlines()[-1]), usage


class _Processors:
    """CPU seconds of the driver, and of everything that Spark's workers start, while a block runs."""

    def __init__(self, driver: int) -> None:
        self._driver = psutil.Process(driver)
        self._workers = [it for it in psutil.Process().children(recursive=True) if _is_worker(it)]
        self._seen: dict[str, dict[tuple[int, float], float]] = {"driver": {}, "executors": {}}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def driver(self) -> float:
        """CPU seconds of the driver: its Python and its Java."""
        return sum(self._seen["driver"].values())

    @property
    def executors(self) -> float:
        """CPU seconds of the executors: Java and Python workers."""
        return sum(self._seen["executors"].values())

    def _watch(self) -> None:
        while not self._done.wait(_LOOK):
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


def _results(logs: Path) -> int:
    """Bytes of results of all tasks, from the event log."""
    total = 0
    for path in logs.iterdir():
        if path.name.startswith("spark-defaults"):
            continue
        with path.open() as lines:
            for line in lines:
                if '"SparkListenerTaskEnd"' in line:
                    total += (json.loads(line).get("Task Metrics") or {}).get("Result Size", 0)
    return total


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
    names = {"driver": "rows through the driver", "executors": "executors write"}
    one = [(names[how], it) for how, it in document["large"].items()]
    many = [("side by side" if at != "1" else "one after another", it) for at, it in document["many"].items()]
    text = [
        f"{document['hours']} hours of {document['queues']} queues, two workers of one core each:",
        "",
        *table(head, [_row(name, it) for name, it in one]),
        "",
    ]
    if many:
        text += [f"{document['clusters']} clusters of {document['small']} queues, executors write:", ""]
        text += [*table(head, [_row(name, it) for name, it in many]), ""]
        first, second = (it["seconds"] for _, it in many)
        text += [f"side by side is {first / second:.2f} times as fast"]
    driver, executors = (document["large"][how] for how in ("driver", "executors"))
    return [
        *text,
        f"to the driver: {driver['results'] / max(1, executors['results']):.0f} times less",
        f"CPU of the driver: {executors['driver_cpu'] / executors['executor_cpu']:.2f} of that of the executors",
        f"the same {document['files']} files as in one process: {'yes' if document['same'] else 'NO'}",
    ]


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

"""The stream, killed at random moments while files keep landing: is anything lost, duplicated or half visible?

In a folder or in a bucket (`--store s3`), in one process or with two executors, which are killed, too (`--executors`).
Files of several clusters land, which the stream computes together (`--clusters`); readers watch the first.
At the end a second stream over the same rollups is started by mistake (`--twice`). In a folder it is refused. In a
bucket it waits; so the first one is paused until its lease has ended, and goes on when the other has committed.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self

import psutil

from ackscope.errors import DataError
from ackscope.manifest import read
from ackscope.object_path import ObjectPath, Place
from ackscope.tables import DAYS, HOURS, MINUTES
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.feeding import Feeder
from bench.pipeline.stage import CLUSTER, S3, Stage, add_store, stage_of
from bench.tables import table, wrap

DRIVER, JAVA, EXECUTOR = "driver", "java", "executor"
# The share of kills at any moment after the start; the others hit a working stream.
_EARLY = 0.15
# Executors that are killed before the stream must commit again: Spark gives a task four attempts. After some rounds
# the driver or its Java is killed.
_EXECUTORS_A_ROUND, _ROUNDS = 3, 2

_LONGEST_START = 600.0
_LONGEST_WORK = 6.0
_BETWEEN_EXECUTORS = 20.0
_TIMEOUT = 600.0
_EXECUTOR_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--kills", type=int, default=200, help="(default 200)")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no kill after so long (default: no limit)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from landing to landing (default 2)")
    parser.add_argument("--clusters", type=int, default=2, help="whose files land (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the input and the moments (default 1)")
    add_store(parser)
    parser.add_argument("--executors", action="store_true", help="two executors compute and write, and are killed, too")
    parser.add_argument("--twice", type=int, default=1, help="streams that are started twice in the end (default 1)")


def measure(args: argparse.Namespace) -> Document:
    """Kill streams; let the last one finish; then compare with one `run` over the same landing."""
    began = time.monotonic()
    minutes = [*MINUTES]
    clusters = [CLUSTER, *(f"{CLUSTER}-{number}" for number in range(2, args.clusters + 1))]
    with stage_of(args.store, args.seed, executors=args.executors) as stage:
        with _Reader(stage.rollups) as reader:
            with ExitStack() as feeding:
                feeders = [
                    feeding.enter_context(Feeder(stage.landing, cluster, args.every, args.seed + number))
                    for number, cluster in enumerate(clusters)
                ]
                killed = _kill(stage, feeders[0], args)
                losers = [_started_twice(stage) for _ in range(args.twice)]
            progress("the last stream ingests what is left")
            _last_life(stage)
        batch = stage.root / "batch"
        streamed = _parts(stage.rollups, clusters, minutes)
        progress("one run over all of it")
        stage.run(batch)
        differing = _differing(streamed, _parts(batch, clusters, minutes))
        # Hours and days that a killed stream left are downsampled by the next run or stream.
        stage.run(stage.rollups)
        coarse = [it.name for it in (*HOURS.values(), *DAYS.values())]
        differing += _differing(_parts(stage.rollups, clusters, coarse), _parts(batch, clusters, coarse))
        rows = sum(it.rows for cluster in clusters for files in read(batch, cluster).tables.values() for it in files)
        files = sum(1 for path in _below(stage.landing) if path.name.endswith(".parquet"))
    broken = [loser for loser in losers if not loser["lost"]]
    goals = [
        Goal("hours and days of a table that differ from those of one run", float(len(differing)), 0.0),
        Goal("of the states that were seen, those that were not whole", float(sum(reader.problems.values())), 0.0),
        Goal("streams that ended or hung although nobody killed them", float(len(stage.ended)), 0.0),
        Goal("of two writers, neither or both lost, or not with one line", float(len(broken)), 0.0),
    ]
    return {
        "store": args.store,
        "executors": bool(args.executors),
        "clusters": len(clusters),
        "kills": dict(killed),
        "landing_files": files,
        "rollup_rows": rows,
        "compared": len(streamed),
        "differing": differing,
        "ended": stage.ended,
        "losers": losers,
        "seconds": round(time.monotonic() - began, 1),
        "seen": reader.seen,
        "goals": [goal.as_dict() for goal in goals],
    }


def _kill(stage: Stage, feeder: Feeder, args: argparse.Namespace) -> Counter[str]:
    killed: Counter[str] = Counter()
    began, shown = time.monotonic(), -1
    lives = 0
    while (count := killed.total()) < args.kills:
        if args.minutes and time.monotonic() - began > args.minutes * 60:
            break
        if count // 10 != shown:
            shown = count // 10
            progress(f"kill {count} of {args.kills}; {feeder.sets} sets of files, manifest {stage.number}")
        # Alternate, so that a short test has both.
        last = (DRIVER, JAVA)[lives % 2]
        executors = min(_EXECUTORS_A_ROUND * _ROUNDS, args.kills - count - 1) if args.executors else 0
        killed.update(_one_life(stage, last, executors))
        lives += 1
    return killed


def _one_life(stage: Stage, last: str, executors: int) -> list[str]:
    """Start a stream, kill executors, then it or its Java process, and wait until all have exited.

    Returns:
        Who was killed when.
    """
    before, early, killed = stage.number, stage.dice.random() < _EARLY, list[str]()
    process = stage.start()
    javas = list[psutil.Process]()
    try:
        if early:
            time.sleep(stage.dice.uniform(0.5, 25.0))
        else:
            _work(stage, process, before)
            for left in reversed(range(executors)):
                if process.poll() is not None:
                    break
                killed += _kill_executor(stage)
                if left % _EXECUTORS_A_ROUND == 0:
                    _work(stage, process, stage.number)
                else:
                    time.sleep(stage.dice.uniform(0.0, _BETWEEN_EXECUTORS))
        at = "at work" if stage.number > before else "starting"
        javas = [it for it in psutil.Process(process.pid).children(recursive=True) if it.name() == "java"]
        if last == JAVA and javas:
            javas[0].kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
    finally:
        process.kill()
        process.wait()
    psutil.wait_procs([*javas, *_executors()], timeout=60)
    return [*killed, f"{last}, {at}"]


def _work(stage: Stage, process: subprocess.Popen[bytes], before: int, log: str = "stream") -> None:
    """Wait until the stream has committed, and a little; note it if it ended instead, or hangs."""
    _until(lambda: stage.number > before or process.poll() is not None, _LONGEST_START)
    if process.poll() is not None or stage.number <= before:
        stage.ended.append((stage.said(log) or ["it hangs, and said nothing"])[-1])
    time.sleep(stage.dice.uniform(0.0, _LONGEST_WORK))


def _executors() -> list[psutil.Process]:
    """Executors that the workers of this process have started."""
    found = []
    for it in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if _EXECUTOR_CLASS in it.cmdline():
                found.append(it)
    return found


def _kill_executor(stage: Stage) -> list[str]:
    """Kill one of the executors, whichever; who was killed when."""
    _until(lambda: bool(_executors()), _LONGEST_START)
    for it in stage.dice.sample(found := _executors(), len(found)):
        with suppress(psutil.NoSuchProcess):
            it.kill()
            return [f"{EXECUTOR}, at work"]
    return []


def _started_twice(stage: Stage) -> dict[str, Any]:
    """Start two streams over the same rollups by mistake; which one lost, and what it said. Both have ended then."""
    progress("two streams over the same rollups")
    before = stage.number
    first, second = stage.start("first"), None
    try:
        _work(stage, first, before, "first")
        is_paused = isinstance(stage.root, ObjectPath)
        if is_paused:
            first.send_signal(signal.SIGSTOP)
        number = stage.number
        # The executors of the cluster belong to the first.
        second = stage.start("second", alone=True)
        loser, log, winner = (first, "first", second) if is_paused else (second, "second", first)
        if is_paused:
            _until(lambda: stage.number > number, _LONGEST_START)
            is_committed = stage.number > number
            first.send_signal(signal.SIGCONT)
        _until(lambda: loser.poll() is not None, _LONGEST_START)
        number = stage.number
        _until(lambda: stage.number > number or winner.poll() is not None, _LONGEST_START)
        went_on = winner.poll() is None and stage.number > number and (not is_paused or is_committed)
        lines = stage.said(log)
        has_lost = loser.poll() == DataError.exit_code and len(lines) == 1
    finally:
        for process in (first, second):
            if process is not None:
                process.kill()
                process.wait()
    return {"lost": has_lost and went_on, "exit": loser.returncode, "lines": lines}


def _last_life(stage: Stage) -> None:
    """Run a stream until nothing is pending; SIGTERM ends it."""
    status = stage.rollups / "_status.json"
    status.unlink(missing_ok=True)
    process = stage.start()
    settled = 0

    def done() -> bool:
        nonlocal settled
        status_document = json.loads(status.read_bytes()) if status.exists() else {}
        settled = settled + 1 if status_document.get("lag_seconds") == 0 else 0
        return settled > 200

    try:
        _until(done, _TIMEOUT)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


class _Reader:
    """The process of `bench.pipeline.watching`, for a `with` block.

    Attributes:
        seen: its final report.
    """

    def __init__(self, rollups: Place) -> None:
        self.seen: dict[str, Any] = {}
        self._command = [sys.executable, "-m", "bench.pipeline.watching", str(rollups), CLUSTER]

    @property
    def problems(self) -> Mapping[str, int]:
        """Return the problems and how often they occurred."""
        found: dict[str, int] = self.seen["problems"]
        return found

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        output, _error = self._process.communicate(timeout=120)
        self.seen = json.loads(output)


def _below(folder: Place) -> Iterable[Place]:
    return folder.below() if isinstance(folder, ObjectPath) else folder.rglob("*")


def _parts(root: Place, clusters: Iterable[str], tables: Sequence[str]) -> dict[str, str]:
    """Return the digest of the rows of every hour or day."""
    return {
        f"{cluster}/{name}/{start}": text
        for cluster in clusters
        for name in tables
        for it in read(root, cluster).files_for(name)
        for start, text in it.parts.items()
    }


def _differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def lines(document: Document) -> list[str]:
    """Kills, observations and goals."""
    seen = document["seen"]
    rows = [(f"killed: {what}", str(count)) for what, count in sorted(document["kills"].items())]
    rows += [
        ("clusters", str(document["clusters"])),
        ("landing files", str(document["landing_files"])),
        ("rollup rows in the end", str(document["rollup_rows"])),
        ("hours of tables of minutes, compared by digest", str(document["compared"])),
        ("looks of the reader", str(seen["looks"])),
        ("states that it saw, each read whole", str(seen["states"])),
        ("times that it read the manifest again for a file", str(seen["again"])),
        *((f"of two writers, one lost: exit {it['exit']}", "yes" if it["lost"] else "NO") for it in document["losers"]),
        ("minutes", f"{document['seconds'] / 60:.0f}"),
    ]
    problems = [line for problem in seen["problems"] for line in wrap(f"seen: {problem}", "  ")]
    differing = [line for it in document["differing"][:10] for line in wrap(f"differs: {it}", "  ")]
    differing += [line for it in document["ended"] for line in wrap(f"ended: {it}", "  ")]
    differing += [line for it in document["losers"] for said in it["lines"] for line in wrap(f"lost: {said}", "  ")]
    goals = [Goal(**goal).line() for goal in document["goals"]]
    where = "a bucket" if document["store"] == S3 else "a folder"
    how = ", with two executors" if document["executors"] else ""
    return [*table((f"of the stream in {where}{how}", ""), rows), "", *problems, *differing, *goals]


BENCH = Bench(
    "kills",
    "the stream, killed at random moments while files keep landing",
    measure,
    lines,
    add_arguments,
    short=("--kills", "10"),
    room="pipeline",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())

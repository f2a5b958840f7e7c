"""Published tables, read by other engines while a stream and a compaction commit: row for row what ackscope reads?"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import IO, Any, Self

from ackscope.arrow_files import parquet_file
from ackscope.manifest import Manifest, read
from ackscope.object_path import Place
from ackscope.tables import BURSTS_1M, LATENCY_1M, OUTCOMES_1M, POLLS_1M, QUEUES_1M, ROLLUPS, STEPS_1M
from bench.background import BackgroundThread
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.delta_readers import ENGINES, SPARK, plain
from bench.pipeline.feeding import START, Feeder
from bench.pipeline.peers import peers_python, spark_python
from bench.pipeline.stage import CLUSTER, S3, Stage, add_store, stage_of
from bench.tables import table, wrap
from pipeline.storage.delta_log import table_address, table_folder, table_options
from pipeline.storage.rollups import Rollups

TABLES = (LATENCY_1M, OUTCOMES_1M, BURSTS_1M, STEPS_1M, POLLS_1M, QUEUES_1M)

_FIRST_COMMIT = 600.0
# The newest version of a table may be that of a commit whose manifest is about to be replaced.
_COMMIT = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=5.0, help="of reading (default 5)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from landing to landing (default 2)")
    parser.add_argument("--compact-every", type=float, default=10.0, help="seconds between compactions (default 10)")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="(default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the input and of what is read (default 1)")
    add_store(parser)


def own_rows(root: Place, manifest: Manifest, name: str) -> list[list[Any]]:
    """What ackscope reads of a table, as `delta_readers` answers: columns, then rows, ordered by all columns."""
    columns = [*ROLLUPS[name].names, "cluster", "date"]
    found = list[list[Any]]()
    for path in manifest.paths(root, name):
        with parquet_file(path) as file:
            rows = file.read().to_pylist()
        partition = {"cluster": manifest.cluster, "date": path.parent.name.removeprefix("date=")}
        # Files of older versions lack columns.
        found += [[plain((row | partition).get(column)) for column in columns] for row in rows]
    return [columns, *sorted(found, key=json.dumps)]


def reader_command(engine: str) -> list[str]:
    """The command that reads with an engine.

    Raises:
        MissingPart: its environment could not be created.
    """
    python = spark_python() if engine == SPARK else peers_python()
    return [str(python), "-m", "bench.pipeline.delta_readers", engine]


class DeltaReader:
    """The process of one engine, for a `with` block; it is started again if it ends."""

    def __init__(self, engine: str, log: Path) -> None:
        self._words = reader_command(engine)
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def rows(self, root: Place, name: str, version: int | None) -> list[list[Any]] | str:
        """The rows of a version of a table, None for the newest; or why they could not be read."""
        folder = table_folder(root, name, CLUSTER)
        request = {"folder": table_address(folder), "version": version, "where": None, "options": table_options(folder)}
        pipe = self._running()
        stdin, stdout = _pipes(pipe)
        try:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            found: list[list[Any]] = json.loads(line)
            return found
        self.end()
        said = [it for it in self._log.read_text(errors="replace").splitlines() if it.strip()]
        return (said or ["it said nothing"])[-1][:300]

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    self._words,
                    cwd=Path(__file__).parents[2],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        return self._process


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    return process.stdin, process.stdout


@dataclass(slots=True)
class _Seen:
    """What one engine has read."""

    reads: int = 0
    rows: int = 0
    states: set[int] = field(default_factory=set)
    differing: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "reads": self.reads,
            "rows": self.rows,
            "states": len(self.states),
            "median": median(self.seconds) if self.seconds else 0.0,
            "differing": self.differing[:20],
        }


class _Compaction(BackgroundThread):
    """Merges the hour files of each day again and again in a thread, inside a `with` block."""

    def __init__(self, root: Place, every: float) -> None:
        super().__init__("compaction")
        self.merged: Counter[str] = Counter()
        self._rollups, self._every = Rollups(root), every

    def _run(self) -> None:
        while not self._end.wait(self._every):
            with self._rollups.writer_lock(CLUSTER):
                manifest, transaction = self._rollups.manifest(CLUSTER), self._rollups.transaction(CLUSTER)
                for it in TABLES:
                    # Only the first of the two days has several hours.
                    if len([file for file in manifest.files_for(it.name) if file.start < _MIDNIGHT]) > 1:
                        transaction.compact_day(it, START.date())
                        self.merged[it.name] += 1
                transaction.commit()


_MIDNIGHT = (int(START.timestamp()) // 86400 + 1) * 24


def measure(args: argparse.Namespace) -> Document:
    """Read in turn with each engine while the stream and the compaction commit."""
    seen = {engine: _Seen() for engine in args.engines}
    with stage_of(args.store, args.seed, executors=False) as stage, ExitStack() as stack:
        readers = {it: stack.enter_context(DeltaReader(it, stage.folder / f"{it}.log")) for it in args.engines}
        stack.enter_context(Feeder(stage.landing, CLUSTER, args.every, args.seed))
        process = stage.start()
        stack.callback(_ended, process)
        progress("waiting for the first commit of the stream")
        for _ in _seconds(_FIRST_COMMIT):
            if process.poll() is not None or _published(stage) == {it.name for it in TABLES}:
                break
        first = stage.number
        compaction = stack.enter_context(_Compaction(stage.rollups, args.compact_every))
        progress("reading; the first turn starts the engines")
        began, turns = time.monotonic(), 0
        while time.monotonic() - began < args.minutes * 60:
            for engine, reader in readers.items():
                _look(stage, reader, seen[engine], TABLES[turns % len(TABLES)].name, is_newest=turns % 2 == 1)
            if not turns:
                began = time.monotonic()
            turns += 1
            if turns % 10 == 0:
                progress(f"{turns} turns, manifest {stage.number}, {compaction.merged.total()} days of a table merged")
        commits, has_ended = stage.number - first, process.poll() is not None
        said = stage.said()
    differing = sum(len(it.differing) for it in seen.values())
    goals = [Goal("reads that are not, row for row, what ackscope reads", float(differing), 0.0)]
    return {
        "store": args.store,
        "minutes": args.minutes,
        "commits": commits,
        "merged": compaction.merged.total(),
        "stream_ended": has_ended,
        "said": said[-5:],
        "engines": {engine: it.as_dict() for engine, it in seen.items()},
        "goals": [goal.as_dict() for goal in goals],
    }


def _look(stage: Stage, reader: DeltaReader, seen: _Seen, name: str, *, is_newest: bool) -> None:
    """Read one table: the version of the manifest, or the newest one without asking the manifest."""
    before = read(stage.rollups, CLUSTER)
    began = time.monotonic()
    found = reader.rows(stage.rollups, name, None if is_newest else before.versions[name])
    seen.seconds.append(time.monotonic() - began)
    seen.reads += 1
    seen.states.add(before.number)
    if isinstance(found, str):
        seen.differing.append(f"{name}, version {before.versions[name]}: {found}")
        return
    seen.rows += len(found) - 1
    if found == own_rows(stage.rollups, before, name):
        return
    if is_newest and any(found == own_rows(stage.rollups, it, name) for it in _later(stage, before)):
        return
    seen.differing.append(f"{name}, version {before.versions[name]}, newest: {is_newest}: {len(found) - 1} rows")


def _later(stage: Stage, before: Manifest) -> Iterator[Manifest]:
    """Manifests that come after this one, as they come."""
    number = before.number
    for _ in _seconds(_COMMIT):
        now = read(stage.rollups, CLUSTER)
        if now.number > number:
            number = now.number
            yield now


def _seconds(seconds: float) -> Iterator[None]:
    """Yield often, for so long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.1)


def _published(stage: Stage) -> set[str]:
    return set(read(stage.rollups, CLUSTER).versions) & {it.name for it in TABLES}


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def lines(document: Document) -> list[str]:
    """What each engine read, and goals."""
    rows = [
        (engine, str(it["reads"]), f"{it['rows']:,}", str(it["states"]), f"{it['median']:.2f} s")
        for engine, it in document["engines"].items()
    ]
    where = "a bucket" if document["store"] == S3 else "a folder"
    return [
        f"{document['minutes']:g} minutes over {where}",
        f"{document['commits']} commits, {document['merged']} days of a table merged",
        "",
        *table(("engine", "reads", "rows", "states", "median of a read"), rows),
        "",
        *(
            part
            for engine, it in document["engines"].items()
            for each in it["differing"]
            for part in wrap(f"{engine}: {each}", "  ")
        ),
        *(Goal(**goal).line() for goal in document["goals"]),
    ]


BENCH = Bench(
    "delta_live",
    "published tables, read by other engines while a stream and a compaction commit",
    measure,
    lines,
    add_arguments,
    short=("--minutes", "1"),
    room="pipeline",
)

if __name__ == "__main__":
    sys.exit(BENCH.main())

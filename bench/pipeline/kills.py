"""The stream, killed at random moments while files keep landing: is anything lost, duplicated or half visible?"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil

from ackscope.errors import DataError
from ackscope.manifest import Manifest, read
from ackscope.tables import DAYS, HOURS, MINUTES
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal
from bench.pipeline.feeding import Feeder
from bench.tables import table, wrap

CLUSTER = "shop"
DRIVER, JAVA = "driver", "java"
# The share of kills at any moment after the start; the others hit a working stream.
_EARLY = 0.15

_LONGEST_START = 180.0
_LONGEST_WORK = 6.0
_TIMEOUT = 600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--kills", type=int, default=200, help="(default 200)")
    parser.add_argument("--minutes", type=float, default=0.0, help="begin no kill after so long (default: no limit)")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from landing to landing (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the input and the moments (default 1)")


def measure(args: argparse.Namespace) -> Document:
    """Kill streams; let the last one finish; then compare with one `run` over the same landing."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with _Reader(root / "rollups") as reader:
            with Feeder(root / "landing", CLUSTER, args.every, args.seed) as feeder:
                killed = _kill(root, feeder, args)
            progress("the last stream ingests what is left")
            _last_life(root)
        streamed = _parts(root / "rollups", MINUTES)
        progress("one run over all of it")
        _run(root, "batch")
        differing = _differing(streamed, _parts(root / "batch", MINUTES))
        # Hours and days that a killed stream left are downsampled by the next run or stream.
        _run(root, "rollups")
        coarse = [it.name for it in (*HOURS.values(), *DAYS.values())]
        differing += _differing(_parts(root / "rollups", coarse), _parts(root / "batch", coarse))
        rows = sum(it.rows for files in _manifest(root / "batch").tables.values() for it in files)
        files = sum(1 for _ in (root / "landing").rglob("*.parquet"))
    goals = [
        Goal("hours and days of a table that differ from those of one run", float(len(differing)), 0.0),
        Goal("of the states that were seen, those that were not whole", float(sum(reader.problems.values())), 0.0),
    ]
    return {
        "kills": dict(killed),
        "landing_files": files,
        "rollup_rows": rows,
        "compared": len(streamed),
        "differing": differing,
        "seconds": round(time.monotonic() - began, 1),
        "seen": reader.seen,
        "goals": [goal.as_dict() for goal in goals],
    }


def _kill(root: Path, feeder: Feeder, args: argparse.Namespace) -> Counter[str]:
    dice = random.Random(args.seed)  # noqa: S311  picks moments, guards nothing
    killed: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(args.kills):
        if args.minutes and time.monotonic() - began > args.minutes * 60:
            break
        if number % 10 == 0:
            progress(f"kill {number} of {args.kills}; {feeder.sets} sets of files, manifest {_number(root)}")
        # Alternate, so that a short test has both.
        killed[_one_life(root, (DRIVER, JAVA)[number % 2], dice)] += 1
    return killed


def _one_life(root: Path, victim: str, dice: random.Random) -> str:
    """Start a stream, kill it or its Java process, and wait until both have exited. Returns who was killed when."""
    before, early = _number(root), dice.random() < _EARLY
    process = _start(root)
    try:
        if early:
            time.sleep(dice.uniform(0.5, 25.0))
        else:
            _until(lambda: _number(root) > before or process.poll() is not None, _LONGEST_START)
            time.sleep(dice.uniform(0.0, _LONGEST_WORK))
        at = "at work" if _number(root) > before else "starting"
        javas = [it for it in psutil.Process(process.pid).children(recursive=True) if it.name() == "java"]
        if victim == JAVA and javas:
            javas[0].kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
    finally:
        process.kill()
        process.wait()
    psutil.wait_procs(javas, timeout=60)
    return f"{victim}, {at}"


def _last_life(root: Path) -> None:
    """Run a stream until nothing is pending; SIGTERM ends it."""
    status = root / "rollups" / "_status.json"
    status.unlink(missing_ok=True)
    process = _start(root)
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

    def __init__(self, rollups: Path) -> None:
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


def _start(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*_command(root, "stream", "rollups"), "--trigger", "500ms"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _run(root: Path, rollups: str) -> None:
    subprocess.run([*_command(root, "run", rollups), "--json"], check=True, stdout=subprocess.DEVNULL)


def _command(root: Path, verb: str, rollups: str) -> list[str]:
    folders = ["--landing", str(root / "landing"), "--rollups", str(root / rollups)]
    return [sys.executable, "-m", "ackscope", "pipeline", verb, *folders]


def _number(root: Path) -> int:
    try:
        return _manifest(root / "rollups").number
    except DataError:
        return -1


def _manifest(root: Path) -> Manifest:
    return read(root, CLUSTER)


def _parts(root: Path, tables: Iterable[str]) -> dict[str, str]:
    """Return the digest of the rows of every hour or day."""
    manifest = _manifest(root)
    return {
        f"{name}/{start}": text
        for name in tables
        for it in manifest.files_for(name)
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
        ("landing files", str(document["landing_files"])),
        ("rollup rows in the end", str(document["rollup_rows"])),
        ("hours of tables of minutes, compared by digest", str(document["compared"])),
        ("looks of the reader", str(seen["looks"])),
        ("states that it saw, each read whole", str(seen["states"])),
        ("times that it read the manifest again for a file", str(seen["again"])),
        ("minutes", f"{document['seconds'] / 60:.0f}"),
    ]
    problems = [line for problem in seen["problems"] for line in wrap(f"seen: {problem}", "  ")]
    differing = [line for it in document["differing"][:10] for line in wrap(f"differs: {it}", "  ")]
    goals = [Goal(**goal).line() for goal in document["goals"]]
    return [*table(("of the stream", ""), rows), "", *problems, *differing, *goals]


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

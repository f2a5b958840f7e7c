"""`python -m bench.pipeline.compaction`: compact a week of ten-second files while a reader polls them."""

import argparse
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ackscope.clock import SystemClock
from ackscope.manifest import read
from ackscope.tables import PROBE_MESSAGES, QUEUES_1M
from bench.bench import Bench, Document, progress
from bench.exporter.goals import Goal, ratio
from bench.pipeline.week import CLUSTER, Week, checked, roll_up
from bench.tables import table
from pipeline.compact import Compactor
from pipeline.jobs import generation
from pipeline.session import spark_session
from pipeline.storage.landing import Landing, Partition
from pipeline.storage.watermark import advance_watermark

_TIMES = 3
# Seconds between two polls of the reader, which shares the cores with the compaction.
_PAUSE = 0.1


def measure(args: argparse.Namespace) -> Document:
    """Write the week, query it, compact it while a reader polls, and query it again."""
    root = Path(tempfile.mkdtemp(prefix="ackscope-compaction-", dir=args.to))
    try:
        return _measure(root, args)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _measure(root: Path, args: argparse.Namespace) -> Document:
    week = Week(root / "landing", args.days, args.every)
    progress(f"writing {2 * week.days * week.files} landing files and {24 * week.days} hours of {args.queues} queues")
    began = time.monotonic()
    for partition in week.partitions():
        week.write(partition)
    roll_up(root / "rollups", week.days, args.queues)
    advance_watermark(root / "rollups", generation(), 1e11)
    progress(f"written in {time.monotonic() - began:.0f} s; querying")
    before = _ask(root)
    progress("compacting, while a reader polls")
    context = multiprocessing.get_context("spawn")
    over, seen = context.Event(), context.Queue()
    reader = context.Process(target=poll, args=(week, over, seen))
    reader.start()
    compactor = Compactor(root / "landing", root / "rollups", partial(spark_session, "local[2]"), SystemClock())
    try:
        summary = compactor.run()
    finally:
        over.set()
    polls = seen.get(timeout=300)
    reader.join()
    after = _ask(root)
    sizes = sorted(path.stat().st_size for path in (root / "landing").rglob("compacted-*.parquet"))
    most = max(len(list((root / "landing" / it.folder).glob("*.parquet"))) for it in week.partitions())
    goals = [Goal(f"{what}: after over before", ratio(after[what], before[what]), 0.1) for what in before]
    goals.append(Goal("polls that read something wrong", float(polls["wrong"]), 0.0))
    goals.append(Goal("files a folder, or files of less than 64 MB where there are several", float(most), 1.0))
    return {
        "days": week.days,
        "every": week.every,
        "queues": args.queues,
        "summary": asdict(summary),
        "sizes": sizes,
        "polls": polls,
        "seconds": {what: [before[what], after[what]] for what in before},
        "goals": [goal.as_dict() for goal in goals],
    }


def poll(week: Week, over: Event, seen: Any) -> None:
    """Read the folders in turn in another process until `over` is set; each row must exist exactly once."""
    landing, partitions = Landing(week.root), list(week.partitions())
    polls = wrong = again = 0
    while not over.is_set() or polls < len(partitions):
        partition = partitions[polls % len(partitions)]
        try:
            values = _values(landing, partition)
        except FileNotFoundError:
            # A listed file was removed by the compaction: every reader must list again.
            again += 1
            continue
        time.sleep(_PAUSE)
        polls += 1
        rows = week.rows(partition)
        if len(values) != rows or pc.count_distinct(values).as_py() != rows:
            wrong += 1
    seen.put({"polls": polls, "wrong": wrong, "listed_again": again})


def _values(landing: Landing, partition: Partition) -> pa.ChunkedArray:
    paths = [str(path) for path in landing.files(partition)]
    name = checked(partition.table)
    return ds.dataset(paths, format="parquet").to_table(columns=[name])[name]


def _ask(root: Path) -> dict[str, float]:
    """Return the seconds of each query, the fastest of several runs."""
    return {
        "landing: the slowest confirm of each hour": _best(lambda: _slowest(root)),
        "rollups: all days of one queue": _best(lambda: _queue(root)),
    }


def _best(query: Callable[[], object]) -> float:
    found = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        query()
        found.append(time.perf_counter() - began)
    return min(found)


def _slowest(root: Path) -> pa.Table:
    folder = root / "landing" / PROBE_MESSAGES.name
    rows = ds.dataset(str(folder), format="parquet", exclude_invalid_files=False).to_table(
        columns={"hour": pc.floor_temporal(ds.field("intended_at"), unit="hour"), "confirm": ds.field("confirm")}
    )
    return rows.group_by("hour").aggregate([("confirm", "max")])


def _queue(root: Path) -> pa.Table:
    paths = [str(path) for path in read(root / "rollups", CLUSTER).paths(root / "rollups", QUEUES_1M.name)]
    return ds.dataset(paths, format="parquet").to_table(
        columns=["minute", "published"], filter=ds.field("queue") == "queue-0007"
    )


def lines(document: Document) -> list[str]:
    """The result table."""
    summary, polls = document["summary"], document["polls"]
    rows = [
        [what, f"{1000 * before:.0f} ms", f"{1000 * after:.0f} ms", f"{before / after:.0f} x"]
        for what, (before, after) in document["seconds"].items()
    ]
    before, after = (f"{summary[name] / 2**20:.0f} MB" for name in ("bytes_before", "bytes_after"))
    smallest, largest = (f"{document['sizes'][index] / 2**20:.1f}" for index in (0, -1))
    written = f"{document['days']} days, {document['queues']} queues, a file every {document['every']} s of 2 tables"
    return [
        f"{written}: {summary['files_before']} files, {before}, {summary['rows']} rows",
        f"became {summary['files_after']} files, {after}, of {smallest} to {largest} MB, in {summary['seconds']:.0f} s",
        f"meanwhile {polls['polls']} polls of whole folders, {polls['wrong']} read something wrong",
        "",
        *table(["query", "before", "after", "faster"], rows),
        "",
        *(Goal(**goal).line() for goal in document["goals"]),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--days", type=int, default=7, metavar="N", help="days of landing files (default 7)")
    parser.add_argument("--every", type=int, default=10, metavar="N", help="seconds a file (default 10)")
    parser.add_argument("--queues", type=int, default=2000, metavar="N", help="of the rollups (default 2000)")
    parser.add_argument("--to", type=Path, metavar="DIR", help="where the files go meanwhile (default: the system's)")


BENCH = Bench(
    "compaction",
    "compaction of a week of small files; queries before and after, and what a reader sees meanwhile",
    measure,
    lines,
    add_arguments,
    ("--days", "2", "--queues", "200"),
    room="pipeline",
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())

"""One batch of a stream that follows many clusters: clusters computed together, compared with one by one."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.object_path import Place
from ackscope.tables import LANDING
from bench.bench import Bench, Document, progress
from bench.pipeline.fleet import START, Fleet
from bench.pipeline.writing import write_fleet
from bench.tables import median, table
from bench.usage import cpu_seconds
from pipeline import side_by_side
from pipeline.ingest_log import IngestLog
from pipeline.rebuild import ingest
from pipeline.session import spark_session
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

_STEP = 15
_NEWEST = 10
"""Seconds of the rows in a batch: an exporter writes a file of each table so often."""
_HOUR = 3600


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--clusters", default="1,10,30", help="numbers of clusters (default 1,10,30)")
    parser.add_argument("--queues", type=int, default=50, help="of each cluster (default 50)")
    parser.add_argument("--times", type=int, default=3, help="batches of each kind (default 3)")


def measure(args: argparse.Namespace) -> Document:
    """Roll up the newest seconds of some clusters, again and again, in both ways."""
    numbers = sorted(int(it) for it in args.clusters.split(","))
    ways = {"together": side_by_side.TOGETHER, "one by one": 1}
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as name, spark_session(long_lived=True) as spark:
        landing, rollups = Landing(Path(name) / "landing"), Rollups(Path(name) / "rollups", delta=False)
        newest = [_land(Path(name) / "landing", number, args.queues) for number in range(numbers[-1])]

        def cost(count: int, limit: int) -> dict[str, float]:
            """Seconds of a batch, and CPU seconds of Python and Java."""
            paths, before = [path for each in newest[:count] for path in each], side_by_side.TOGETHER
            side_by_side.TOGETHER = limit
            began, cpu = time.monotonic(), cpu_seconds(os.getpid())
            try:
                ingest(spark, landing, rollups, paths, IngestLog(time.time()))
            finally:
                side_by_side.TOGETHER = before
            return {"seconds": time.monotonic() - began, "cpu": cpu_seconds(os.getpid()) - cpu}

        batches = {}
        for count in numbers:
            # The first of each kind is not counted: Java compiles its code.
            rounds = []
            for number in range(args.times + 1):
                progress(f"{count} clusters: batch {number} of {args.times}")
                rounds.append({way: cost(count, limit) for way, limit in ways.items()})
            batches[str(count)] = {
                way: {key: median([it[way][key] for it in rounds[1:]]) for key in ("seconds", "cpu")} for way in ways
            }
    return {"queues": args.queues, "times": args.times, "batches": batches}


def _land(landing: Path, number: int, queues: int) -> list[Place]:
    """Land an hour of a cluster, its newest rows in files of their own; return these files."""
    fleet = Fleet(f"cluster-{number:02}", queues=queues, days=1, incidents=0, seed=number)
    write_fleet(landing, fleet, 1, _STEP, 1)
    newest: list[Place] = []
    for path in landing.glob(f"*/cluster={fleet.cluster}/*/*.parquet"):
        rows = pq.ParquetFile(path).read()
        moments = rows[LANDING[path.parents[2].name].time].cast(pa.int64()).to_numpy()
        is_new = moments >= (START + _HOUR - _NEWEST) * 1_000_000
        pq.write_table(rows.filter(pa.array(~is_new)), path, compression="zstd")
        if is_new.any():
            newest.append(path.with_name(f"{START + _HOUR - _NEWEST}.parquet"))
            pq.write_table(rows.filter(pa.array(is_new)), newest[-1], compression="zstd")
    return newest


def lines(document: Document) -> list[str]:
    """Seconds and CPU seconds of a batch in both ways."""
    rows = []
    for count, each in document["batches"].items():
        one, all_ = each["one by one"], each["together"]
        rows.append(
            (
                count,
                f"{one['seconds']:.1f}",
                f"{one['cpu']:.1f}",
                f"{all_['seconds']:.1f}",
                f"{all_['cpu']:.1f}",
                f"{one['seconds'] / all_['seconds']:.2f}",
            )
        )
    return [
        f"new files of clusters of {document['queues']} queues; medians of {document['times']} batches",
        "",
        *table(("clusters", "one by one, s", "CPU s", "together, s", "CPU s", "times as fast"), rows),
    ]


BENCH = Bench(
    "batch",
    "a batch of a stream of many clusters: computed together, compared with one by one",
    measure,
    lines,
    add_arguments,
    short=("--clusters", "1,4", "--times", "1", "--queues", "20"),
    room="pipeline",
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())

"""One batch of a stream that follows many clusters: clusters computed together, compared with one by one."""

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
_NEWEST = 10.0
"""Seconds of the rows in a batch: an exporter writes a file of each table so often."""
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class BatchCost:
    """Medians of the batches of one kind: wall-clock seconds, and CPU seconds of Python and Java."""

    seconds: float
    cpu: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--clusters", default="1,10,30", help="numbers of clusters (default 1,10,30)")
    parser.add_argument("--queues", type=int, default=50, help="of each cluster (default 50)")
    parser.add_argument("--times", type=int, default=3, help="batches of each kind (default 3)")


def measure(args: argparse.Namespace) -> Document:
    """Roll up the newest seconds of some clusters, again and again, in both ways."""
    numbers = sorted(int(it) for it in args.clusters.split(","))
    together = side_by_side.TOGETHER
    found: dict[str, dict[str, list[BatchCost]]] = {}
    with tempfile.TemporaryDirectory(prefix="ackscope-bench-") as name, spark_session(long_lived=True) as spark:
        landing, rollups = Landing(Path(name) / "landing"), Rollups(Path(name) / "rollups", delta=False)
        newest = [_land(Path(name) / "landing", number, args.queues) for number in range(numbers[-1])]
        for count in numbers:
            paths = [path for each in newest[:count] for path in each]
            costs: dict[str, list[BatchCost]] = {"together": [], "one by one": []}
            # The first of each kind is not counted: Java compiles its code.
            for number in range(args.times + 1):
                for how, limit in (("together", together), ("one by one", 1)):
                    progress(f"{count} clusters, {how}: batch {number} of {args.times}")
                    side_by_side.TOGETHER = limit
                    began, cpu = time.monotonic(), cpu_seconds(os.getpid())
                    ingest(spark, landing, rollups, paths, IngestLog(time.time()))
                    cost = BatchCost(time.monotonic() - began, cpu_seconds(os.getpid()) - cpu)
                    if number:
                        costs[how].append(cost)
            side_by_side.TOGETHER = together
            found[str(count)] = costs
    batches = {
        count: {
            how: {"seconds": median([it.seconds for it in each]), "cpu": median([it.cpu for it in each])}
            for how, each in costs.items()
        }
        for count, costs in found.items()
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
        is_new = moments >= np.int64((START + _HOUR - _NEWEST) * 1e6)
        pq.write_table(rows.filter(pa.array(~is_new)), path, compression="zstd")
        if is_new.any():
            newest.append(path.with_name(f"{START + _HOUR - round(_NEWEST)}.parquet"))
            pq.write_table(rows.filter(pa.array(is_new)), newest[-1], compression="zstd")
    return newest


def lines(document: Document) -> list[str]:
    """Seconds of a batch, and what a cluster more costs."""
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

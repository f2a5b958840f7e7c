"""Ackscope's own rollup in its own process, with one session for all requests; the counterpart of `contenders.py`.

A line on stdin: {"landing", "to", "distinct", "tables"}; a line on stdout: {"messages", "counted", "nanoseconds",
"listing", "rows", "files"}; `listing` is the seconds to list the landing files, `rows` the rollup rows by table,
`files` their files. Without `distinct` there is no deduplication, which ackscope itself never skips. With `tables`,
only rollups of these landing tables are computed.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ackscope.clock import SystemClock
from ackscope.object_path import Place
from ackscope.tables import LANDING, LATENCY_1M, MINUTES, OUTCOMES_1M, Table
from pipeline.rebuild import rebuild
from pipeline.session import spark_session
from pipeline.storage.landing import Landing, TouchedHours
from pipeline.storage.rollups import Rollups
from pipeline.transforms import latency, outcomes
from pipeline.transforms.common import distinct_messages


def _as_they_are(rows: DataFrame, _scope: Sequence[str]) -> DataFrame:
    return rows


def _roll_up(spark: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    clock = SystemClock()
    began = clock.now()
    landing, rollups = Landing(Path(request["landing"])), Rollups(Path(request["to"]))
    touched: TouchedHours = defaultdict(set)
    tables = request.get("tables") or LANDING
    for partition in landing.partitions():
        if partition.table.name not in tables:
            continue
        for stats in landing.files(partition).values():
            touched[partition.table, partition.cluster] |= stats.hours
    listing = clock.now().since(began)
    rebuild(spark, landing, rollups, touched)
    return {
        "messages": _sum(rollups, OUTCOMES_1M, "messages"),
        "counted": _sum(rollups, LATENCY_1M, "count"),
        "nanoseconds": _sum(rollups, LATENCY_1M, "sum", 1e9),
        "listing": listing,
        "rows": {name: rows for name, rows in rollups.row_counts().items() if rows and name in MINUTES},
        "files": {name: [str(path) for path in _files(rollups, table)] for name, table in MINUTES.items()},
    }


def _sum(rollups: Rollups, table: Table, column: str, times: float = 1) -> int:
    """Return the sum of a column over all files in the manifests; each value is integral after the multiplication."""
    total = 0
    for path in _files(rollups, table):
        values = pq.ParquetFile(path).read([column])[column]
        total += int(pc.sum(pc.round(pc.multiply(values, times)).cast("int64")).as_py() or 0)
    return total


def _files(rollups: Rollups, table: Table) -> Iterator[Place]:
    for cluster in rollups.clusters():
        yield from rollups.manifest(cluster).paths(rollups.root, table.name)


def main() -> None:
    """Serve requests until stdin ends."""
    with spark_session() as spark:
        for line in sys.stdin:
            request = json.loads(line)
            chosen = distinct_messages if request["distinct"] else _as_they_are
            for module in (latency, outcomes):
                vars(module)[distinct_messages.__name__] = chosen
            print(json.dumps(_roll_up(spark, request)), flush=True)


if __name__ == "__main__":
    main()

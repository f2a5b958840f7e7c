"""node_samples -> nodes_1m."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import NODE_SAMPLES, NODES_1M
from pipeline.transforms.common import distinct_rows, minute

_FLAGS = {"drained": "being_drained", "mem_alarms": "mem_alarm", "disk_alarms": "disk_free_alarm"}
_MAX = ("partitions", "mem_used", "fd_used", "sockets_used", "proc_used", "run_queue")
_LAST = ("mem_used", "mem_limit", "disk_free", "disk_free_limit", "fd_total", "sockets_total", "proc_total")


def nodes_1m(samples: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute and node; unknown flags count neither as true nor as false."""
    uptime = F.col("uptime_seconds")
    rows = distinct_rows(samples.select(*scope, *NODE_SAMPLES.names), (*scope, "node", "at"))
    minutes = rows.groupBy(*scope, minute("at"), "node").agg(
        F.count("*").alias("samples"),
        F.count_if(~F.col("running")).alias("down"),
        *(F.count_if(flag).alias(name) for name, flag in _FLAGS.items()),
        *(F.max(name).alias(f"{name}_max") for name in _MAX),
        *(_last(name).alias(f"{name}_last") for name in _LAST),
        F.min("disk_free").alias("disk_free_min"),
        F.min(F.when((uptime >= 0) & (uptime < float("inf")), uptime)).alias("uptime_min"),
    )
    return minutes.select(*scope, *NODES_1M.names)


def _last(name: str) -> Column:
    return F.max_by(name, "at")

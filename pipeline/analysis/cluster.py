"""Baselines of the whole cluster, from sums over its queues where these are complete.

The probes' own queues are not landed, so the sums are application traffic. A message routed to three queues counts as
published three times here; `exporter.api.throughput` adds up the same way.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUES_1M
from pipeline.analysis.series import MeasureFamily

_LEVELS = {"ready": "messages_ready", "unacked": "messages_unacked"}
_COUNTS = ("published", "delivered", "acked", "redelivered")


def _sums(rows: DataFrame, time: str) -> DataFrame:
    """One row per hour: each measure, and `<measure>_high` for levels. A sum that would be incomplete is null."""
    hours = rows.groupBy(time).agg(F.max("last_minute").alias("end"))
    levels = [it for name, column in _LEVELS.items() for it in (_level(column).alias(name), _high(name, column))]
    sums = (
        rows.join(F.broadcast(hours), time)
        .groupBy(time)
        .agg(F.max("minutes").alias("minutes"), *levels, *(_count(name) for name in _COUNTS))
    )
    return sums.select("*", *(F.lit("").alias(name) for name in ("vhost", "name", "prefix")))


def _level(column: str) -> Column:
    """The sum over all queues that existed at the end of the hour."""
    last = F.when(F.col("last_minute") == F.col("end"), F.col(f"{column}_last"))
    lacking = (F.col("last_minute") == F.col("end")) & F.col(f"{column}_last").isNull()
    return F.when(F.max(lacking.cast("int")) == 0, F.sum(last))


def _high(name: str, column: str) -> Column:
    """The level plus the largest rise of one queue to its peak: queues rarely peak at the same time."""
    rise = F.max(F.col(f"{column}_max") - F.coalesce(f"{column}_last", F.lit(0)))
    return (_level(column) + F.greatest(rise, F.lit(0))).alias(f"{name}_high")


def _count(name: str) -> Column:
    """The sum over all queues; null if the statistics of a queue were not read, or no queue has any counter.

    Consumers are read with the statistics: if the consumers of a queue are unknown, so are its counters. A queue with
    statistics but no counter counts zero. If no queue has any counter, the broker's statistics are off.
    """
    complete = F.max(F.col("consumers_last").isNull().cast("int")) == 0
    counting = F.max(F.coalesce(*_COUNTS)).isNotNull()
    return F.when(complete & counting, F.coalesce(F.sum(name), F.lit(0))).alias(name)


# Only for bands: shifts are reported for the queues that caused them, not for the sum.
CLUSTER = MeasureFamily(
    "cluster",
    QUEUES_1M,
    {"ready": "ready", "unacked": "unacked", **{name: f"{name} / (60.0 * minutes)" for name in _COUNTS}},
    _sums,
    highest={"ready": "ready_high", "unacked": "unacked_high"},
)

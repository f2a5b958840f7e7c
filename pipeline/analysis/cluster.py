"""The whole cluster as an object with bands: the sums over its queues, where they are whole.

The probes' own queues are not landed, so these are of applications. A message that is routed to three queues is
published three times here; `exporter.api.throughput` adds up the same way.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUES_1M
from pipeline.analysis.series import Family

_LEVELS = {"ready": "messages_ready", "unacked": "messages_unacked"}
_COUNTS = ("published", "delivered", "acked", "redelivered")


def _sums(rows: DataFrame, time: str) -> DataFrame:
    """One row an hour: each measure, and of levels `<measure>_high`, null where the sum would not be whole."""
    hours = rows.groupBy(time).agg(F.max("last_minute").alias("end"))
    levels = [it for name, column in _LEVELS.items() for it in (_level(column).alias(name), _high(name, column))]
    sums = (
        rows.join(F.broadcast(hours), time)
        .groupBy(time)
        .agg(F.max("minutes").alias("minutes"), *levels, *(_count(name) for name in _COUNTS))
    )
    return sums.select("*", *(F.lit("").alias(name) for name in ("vhost", "name", "prefix")))


def _level(column: str) -> Column:
    """What all queues that were there at the end of the hour held then."""
    last = F.when(F.col("last_minute") == F.col("end"), F.col(f"{column}_last"))
    lacking = (F.col("last_minute") == F.col("end")) & F.col(f"{column}_last").isNull()
    return F.when(F.max(lacking.cast("int")) == 0, F.sum(last))


def _high(name: str, column: str) -> Column:
    """With the one queue that rose most at its peak: most peaks are of one queue, and not all at once."""
    rise = F.max(F.col(f"{column}_max") - F.coalesce(f"{column}_last", F.lit(0)))
    return (_level(column) + F.greatest(rise, F.lit(0))).alias(f"{name}_high")


def _count(name: str) -> Column:
    """What all queues counted; one whose statistics were read and that has no counter has counted nothing.

    Consumers are read with the statistics: where they are not known of a queue, its counters are not either. Where no
    queue tells any counter the broker keeps none.
    """
    whole = F.max(F.col("consumers_last").isNull().cast("int")) == 0
    counting = F.max(F.coalesce(*_COUNTS)).isNotNull()
    return F.when(whole & counting, F.coalesce(F.sum(name), F.lit(0))).alias(name)


CLUSTER = Family(
    "cluster",
    QUEUES_1M,
    {"ready": "ready", "unacked": "unacked", **{name: f"{name} / (60.0 * minutes)" for name in _COUNTS}},
    _sums,
    highest={"ready": "ready_high", "unacked": "unacked_high"},
)
"""For bands alone: a shift of the whole is told as that of the queues that shifted."""

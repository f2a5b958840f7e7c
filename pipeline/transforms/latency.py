"""probe_messages -> latency_1m: histograms of every measure."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.tables import LATENCY_1M, MEASURES
from pipeline.transforms.common import MESSAGE, STREAM, distinct_messages, duration, minute, nanoseconds, seconds


def latency_1m(messages: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute, stream and measure with at least one duration.

    Two aggregations: the first counts by bucket number, so each message costs one addition; the second turns at most 48
    rows per group into 48 columns. A single pass with 48 conditional sums would cost 48 additions per message.
    """
    rows = messages.select(*scope, *MESSAGE, "intended_at", "queue_type", "vhost", "delivery_mode", *MEASURES)
    by = (*scope, "minute", *STREAM, "delivery_mode", "measure")
    buckets = (
        distinct_messages(rows, scope)
        .select(
            *scope, minute("intended_at"), *STREAM, "delivery_mode", *(duration(name).alias(name) for name in MEASURES)
        )
        .unpivot(list(by[:-1]), list(MEASURES), "measure", "seconds")
        .where(F.col("seconds").isNotNull())
        .groupBy(*by, F.expr(bucket("seconds")).alias("bucket"))
        .agg(
            F.count("*").alias("count"),
            nanoseconds(F.col("seconds")).alias("sum"),
            F.max("seconds").alias("max"),
        )
    )
    minutes = buckets.groupBy(*by).agg(
        F.sum("count").alias("count"),
        seconds(F.sum("sum")).alias("sum"),
        F.max("max").alias("max"),
        *(F.expr(f"sum(if(bucket = {index}, count, 0L))").alias(name) for index, name in enumerate(latency.COLUMNS)),
    )
    return minutes.withColumn("bounds", F.lit(latency.BOUNDS_VERSION)).select(*scope, *LATENCY_1M.names)


def bucket(value: str, low: int = 0, high: int = latency.BUCKETS - 1) -> str:
    """`ackscope.latency.bucket` as SQL: the same bisection over the same edges, unrolled.

    As text, not as a tree of columns: each node of a tree costs a few calls into Java in every rebuild.
    """
    if low == high:
        return str(low)
    middle = (low + high) // 2
    below, above = bucket(value, low, middle), bucket(value, middle + 1, high)
    return f"if({value} <= {latency.EDGES[middle]!r}D, {below}, {above})"

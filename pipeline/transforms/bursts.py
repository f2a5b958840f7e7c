"""ack_bursts -> bursts_1m: how the broker batches its confirms."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import ACK_BURSTS, BURSTS_1M
from pipeline.transforms.common import STREAM, duration, minute, nanoseconds, seconds


def bursts_1m(bursts: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute and stream."""
    # Bursts have no key: equal rows are one burst that landed twice.
    rows = bursts.select(*scope, *ACK_BURSTS.names).distinct()
    interval = duration("interval")
    minutes = rows.groupBy(*scope, minute("at"), *STREAM).agg(
        F.count("*").alias("bursts"),
        F.sum("frames").alias("frames"),
        F.sum("multiple_frames").alias("multiple_frames"),
        F.sum("messages").alias("messages"),
        F.max("messages").alias("messages_max"),
        seconds(nanoseconds(interval)).alias("interval_sum"),
        F.count(interval).alias("interval_count"),
        F.max(interval).alias("interval_max"),
    )
    return minutes.select(*scope, *BURSTS_1M.names)

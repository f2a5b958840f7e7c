"""queue_samples, poll_samples -> queues_1m."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUE_SAMPLES, QUEUES_1M
from pipeline.transforms.holding import Holding, held, last

COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Counter of a sample -> its increase of a minute."""

_QUEUES = Holding(
    QUEUE_SAMPLES,
    "queues",
    levels=("queue_type", "messages_ready", "messages_unacked", "consumers"),
    counters=COUNTERS,
    births=True,
)


def queues_1m(samples: DataFrame, polls: DataFrame, wanted: DataFrame | None = None) -> DataFrame:
    """One row a minute and queue."""
    levels = [
        F.max("queue_type").alias("queue_type"),
        F.max(held("messages_ready")).alias("messages_ready_max"),
        last("messages_ready").alias("messages_ready_last"),
        F.max(held("messages_unacked")).alias("messages_unacked_max"),
        last("messages_unacked").alias("messages_unacked_last"),
        F.min(held("consumers")).alias("consumers_min"),
        last("consumers").alias("consumers_last"),
    ]
    kinds = _kinds(samples)
    coded = samples.crossJoin(kinds).withColumn("queue_type", F.array_position("kinds", F.col("queue_type")))
    rows = _QUEUES.minutes(coded, polls, levels, wanted).crossJoin(kinds)
    rows = rows.withColumn("queue_type", F.expr("element_at(kinds, cast(queue_type AS int))"))
    return rows.withColumn("busy", F.expr("cast(published > 0 AS bigint)")).select(*QUEUES_1M.names)


def _kinds(samples: DataFrame) -> DataFrame:
    """One row: the types of queues, in order.

    As numbers in that order they are gathered in a hash table; text would have all rows sorted.
    """
    return F.broadcast(samples.agg(F.sort_array(F.collect_set("queue_type")).alias("kinds")))

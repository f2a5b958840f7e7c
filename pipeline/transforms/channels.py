"""channel_samples, poll_samples -> channels_1m."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import CHANNEL_SAMPLES, CHANNELS_1M
from pipeline.transforms.holding import Holding, count_polls, held, last

_OWNER = ("connection", "vhost", "user", "node")

_CHANNELS = Holding(
    CHANNEL_SAMPLES,
    "channels",
    levels=(*_OWNER, "prefetch_count", "consumers", "messages_unacked", "messages_unconfirmed"),
    counters={
        "publish": "published",
        "confirm": "confirmed",
        "deliver": "delivered",
        "ack": "acked",
        "redeliver": "redelivered",
    },
)


def channels_1m(samples: DataFrame, polls: DataFrame, wanted: DataFrame | None = None) -> DataFrame:
    """One row a minute and channel.

    The prefetch is that of each consumer (`basic.qos` with global=false), so a channel may hold as many messages for
    each that it has; where their number is not told, for one.
    """
    limited = (F.col("prefetch_count") > 0) & (F.coalesce("consumers", F.lit(1)) > 0)
    allowed = F.col("prefetch_count") * F.coalesce("consumers", F.lit(1))
    levels = [
        *(F.max(name).alias(name) for name in _OWNER),
        count_polls(limited).alias("limited"),
        count_polls(limited & (F.col("messages_unacked") >= allowed)).alias("at_ceiling"),
        last("prefetch_count").alias("prefetch_last"),
        F.max(held("messages_unacked")).alias("unacked_max"),
        last("messages_unacked").alias("unacked_last"),
        F.max(held("messages_unconfirmed")).alias("unconfirmed_max"),
        last("messages_unconfirmed").alias("unconfirmed_last"),
    ]
    return _CHANNELS.minutes(samples, polls, levels, wanted).select(*CHANNELS_1M.names)

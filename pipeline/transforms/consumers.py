"""consumer_samples, poll_samples -> consumers_1m."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import CONSUMER_SAMPLES, CONSUMERS_1M
from pipeline.transforms.holding import Holding, count_polls, last

_OWNER = ("connection", "user", "node")

_CONSUMERS = Holding(CONSUMER_SAMPLES, "consumers", levels=(*_OWNER, "prefetch_count", "ack_required", "active"))


def consumers_1m(samples: DataFrame, polls: DataFrame, wanted: DataFrame | None = None) -> DataFrame:
    """One row a minute and consumer; what it does not tell, counts neither as inactive nor as automatic."""
    levels = [
        *(F.max(name).alias(name) for name in _OWNER),
        count_polls(~F.col("active")).alias("inactive"),
        count_polls(~F.col("ack_required")).alias("automatic"),
        last("prefetch_count").alias("prefetch_last"),
    ]
    return _CONSUMERS.minutes(samples, polls, levels, wanted).select(*CONSUMERS_1M.names)

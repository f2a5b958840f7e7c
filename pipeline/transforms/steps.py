"""probe_steps -> steps_1m: histograms of every timed step, and failures."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.tables import PROBE_STEPS, STEPS_1M
from pipeline.transforms.common import duration, minute, nanoseconds, seconds
from pipeline.transforms.latency import bucket

_STEP = ("probe", "stream", "vhost", "node", "step")


def steps_1m(steps: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute and step; failed steps count in `attempts` and have no duration."""
    ended = F.when(F.col("ok"), duration("seconds"))
    rows = (
        steps.select(*scope, *PROBE_STEPS.names)
        .distinct()
        .select(*scope, minute("at"), *_STEP, "ok", ended.alias("seconds"))
        .withColumn("bucket", F.expr(f"if(seconds IS NULL, -1, {bucket('seconds')})"))
    )
    minutes = rows.groupBy(*scope, "minute", *_STEP).agg(
        F.count("*").alias("attempts"),
        F.count_if(~F.coalesce("ok", F.lit(False))).alias("failures"),
        F.count("seconds").alias("count"),
        seconds(nanoseconds(F.col("seconds"))).alias("sum"),
        F.max("seconds").alias("max"),
        *(F.expr(f"count_if(bucket = {index})").alias(name) for index, name in enumerate(latency.COLUMNS)),
    )
    return minutes.withColumn("bounds", F.lit(latency.BOUNDS_VERSION)).select(*scope, *STEPS_1M.names)

"""poll_samples -> polls_1m."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import POLL_SAMPLES, POLLS_1M
from pipeline.transforms.common import distinct_rows, duration, minute, nanoseconds, seconds


def polls_1m(polls: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute and endpoint family; failures have an age and no duration."""
    rows = distinct_rows(polls.select(*scope, *POLL_SAMPLES.names), (*scope, "family", "at"))
    good = F.coalesce("success", F.lit(False))
    took = F.when(good, duration("took"))
    minutes = rows.groupBy(*scope, minute("at"), "family").agg(
        F.count_if(good).alias("reads"),
        F.count_if(~good).alias("failures"),
        seconds(nanoseconds(took)).alias("took_sum"),
        F.max(took).alias("took_max"),
        F.max(duration("age")).alias("age_max"),
        F.max_by("objects", F.when(good, F.col("at"))).alias("objects_last"),
        F.sum(F.when(good, F.col("gaps"))).alias("gaps"),
        F.count_if(good & F.col("whole")).alias("wholes"),
    )
    return minutes.select(*scope, *POLLS_1M.names)

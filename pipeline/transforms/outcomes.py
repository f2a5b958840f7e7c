"""probe_messages -> outcomes_1m: outcomes of the messages intended for a minute."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import OUTCOMES, OUTCOMES_1M
from pipeline.transforms.common import MESSAGE, STREAM, distinct_messages, minute


def outcomes_1m(messages: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """One row per minute and stream; lost, late and undecided messages stay in `messages`."""
    rows = messages.select(
        *scope,
        *MESSAGE,
        "intended_at",
        "queue_type",
        "vhost",
        "delivery_mode",
        "outcome",
        "deliveries",
        "redelivered",
        "out_of_order",
    )
    deliveries = F.col("deliveries")
    # Null if no deliveries are expected: then the message counts neither as missing nor as a duplicate.
    missing = (F.col("outcome") == "acked") & (deliveries == 0)
    minutes = (
        distinct_messages(rows, scope)
        .groupBy(*scope, minute("intended_at"), *STREAM, "delivery_mode")
        .agg(
            F.count("*").alias("messages"),
            *(F.count_if(F.col("outcome") == name).alias(name) for name in OUTCOMES),
            F.count_if("redelivered").alias("redelivered"),
            F.sum(F.when(deliveries > 1, deliveries - 1).otherwise(0)).alias("duplicates"),
            F.count_if("out_of_order").alias("out_of_order"),
            F.count_if(missing).alias("missing"),
        )
    )
    return minutes.select(*scope, *OUTCOMES_1M.names)

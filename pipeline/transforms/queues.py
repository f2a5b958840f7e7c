"""queue_samples -> queues_1m: levels, and counters as increases."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUE_SAMPLES, QUEUES_1M
from pipeline.transforms.common import distinct_rows, minute

COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Counter of a sample -> its increase of a minute."""

MEMORY = 600
"""Seconds: an increase over a longer silence is unknown. All of it would stand in one minute, as a peak that never
was; a gap is shown as a gap."""


def queues_1m(samples: DataFrame) -> DataFrame:
    """One row a minute and queue.

    The increase between two samples belongs to the minute of the later one, so that minutes add up to the whole;
    the samples must therefore reach back `MEMORY` seconds before the first minute that is wanted.
    """
    rows = samples.select(*QUEUE_SAMPLES.names)
    known = distinct_rows(rows, ("vhost", "queue", "at"), together=("vhost", "queue")).select(
        *QUEUE_SAMPLES.names,
        *(_last_known(F.col(counter)).alias(f"{counter}_before") for counter in COUNTERS),
        _last_known(F.coalesce(*(F.col(counter) for counter in COUNTERS))).alias("any_before"),
    )
    minutes = (
        known.select(*QUEUE_SAMPLES.names, *(_increase(counter).alias(name) for counter, name in COUNTERS.items()))
        .groupBy("vhost", "queue", minute("at"))
        .agg(
            F.max_by("queue_type", "at").alias("queue_type"),
            F.count("*").alias("samples"),
            F.max("messages_ready").alias("messages_ready_max"),
            F.max_by("messages_ready", "at").alias("messages_ready_last"),
            F.max("messages_unacked").alias("messages_unacked_max"),
            F.max_by("messages_unacked", "at").alias("messages_unacked_last"),
            F.min("consumers").alias("consumers_min"),
            F.max_by("consumers", "at").alias("consumers_last"),
            *(F.sum(name).alias(name) for name in COUNTERS.values()),
        )
    )
    return minutes.select(*QUEUES_1M.names)


def _last_known(value: Column) -> Column:
    """When an earlier sample of this queue last knew this, and what: {at, value}, or null."""
    earlier = (
        Window.partitionBy("vhost", "queue").orderBy("at").rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    return F.last(F.when(value.isNotNull(), F.struct("at", value.alias("value"))), ignorenulls=True).over(earlier)


def _increase(counter: str) -> Column:
    """How much a counter grew since the sample before; null where that cannot be told.

    A fall means that the queue or the broker's statistics began anew: the new value counts. The broker leaves a
    counter out before its first event, so where earlier samples had only others, this one stood at zero; where
    they had none, nothing was asked or told, and the increase is unknown.
    """
    value = F.col(counter)
    before = F.coalesce(
        F.when(_fresh(f"{counter}_before"), F.col(f"{counter}_before.value")),
        F.when(_fresh("any_before"), F.lit(0)),
    )
    return F.when(before.isNotNull(), F.when(value >= before, value - before).otherwise(value))


def _fresh(known: str) -> Column:
    return F.unix_micros("at") - F.unix_micros(f"{known}.at") <= MEMORY * 1_000_000

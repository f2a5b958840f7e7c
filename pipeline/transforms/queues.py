"""queue_samples, poll_samples -> queues_1m: levels at every poll, and counters as increases.

The samples tell changes; what they say holds until the next one, at the polls that succeeded, and `HEARTBEAT` seconds
at most (`ackscope.tables.QUEUE_SAMPLES`).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT, POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M
from pipeline.hours import REACH
from pipeline.transforms.common import distinct_rows

COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Counter of a sample -> its increase of a minute."""

MEMORY = REACH
"""Seconds: an increase over a longer silence is unknown. Of two heartbeats, the earlier one may tell older counters."""

_LEVELS = ("queue_type", "messages_ready", "messages_unacked", "consumers")
_MINUTE = 60_000_000


def queues_1m(samples: DataFrame, polls: DataFrame) -> DataFrame:
    """One row a minute and queue.

    An increase is spread evenly over the time between the two samples that tell it, so that minutes add up to the
    whole and none is a peak that never was. A minute depends on samples `MEMORY` seconds before and after it.
    """
    minutes = (
        _known(samples)
        .crossJoin(F.broadcast(_whole(polls)))
        .withColumn("until", _until())
        .withColumn("minute", F.explode(F.expr(_minutes())))
        .join(F.broadcast(_by_minute(polls)), "minute", "left")
        .withColumn("polls", F.expr(_polls()))
        .groupBy("vhost", "queue", "minute")
        .agg(*_levels(), *(_grown(counter).alias(name) for counter, name in COUNTERS.items()))
        .where((F.col("samples") > 0) | F.coalesce(*COUNTERS.values()).isNotNull())
        .withColumn("minute", F.timestamp_micros("minute"))
    )
    return minutes.select(*QUEUES_1M.names)


def _known(samples: DataFrame) -> DataFrame:
    """Each sample with what was known before it, and when the next one came; times in microseconds."""
    rows = distinct_rows(samples.select(*QUEUE_SAMPLES.names), ("vhost", "queue", "at"), together=("vhost", "queue"))
    gone, at = F.coalesce("gone", F.lit(False)), F.unix_micros("at")
    told = F.least(F.unix_micros("details_at"), at)
    # A queue that is not there has counted nothing.
    counted = {name: F.when(gone, F.lit(0)).otherwise(F.col(name)) for name in COUNTERS}
    stated = rows.select(
        "vhost",
        "queue",
        at.alias("at"),
        told.alias("told"),
        gone.alias("gone"),
        F.col("details_at").isNotNull().alias("older"),
        *_LEVELS,
        *(value.alias(name) for name, value in counted.items()),
    )
    queue = Window.partitionBy("vhost", "queue").orderBy("at")
    earlier = queue.rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    return stated.select(
        "*",
        F.lead("at").over(queue).alias("next"),
        *(_last_known(F.col(name)).over(earlier).alias(f"{name}_then") for name in COUNTERS),
        _last_known(F.coalesce(*COUNTERS)).over(earlier).alias("any_then"),
    ).select("*", *(_before(name).alias(f"{name}_before") for name in COUNTERS))


def _last_known(value: Column) -> Column:
    """What an earlier sample of this queue last knew, and of when: {told, value}, or null."""
    return F.last(F.when(value.isNotNull(), F.struct("told", value.alias("value"))), ignorenulls=True)


def _before(counter: str) -> Column:
    """Where an increase starts: {told, value}; null where it cannot be told.

    The broker leaves a counter out before its first event, so where earlier samples had only others, this one stood
    at zero; where they had none, nothing was asked or told, and the increase is unknown.
    """
    other = F.struct(F.col("any_then.told").alias("told"), F.lit(0).cast("long").alias("value"))
    known = F.coalesce(_fresh(f"{counter}_then", F.col(f"{counter}_then")), _fresh("any_then", other))
    return F.when(~F.col("gone") & F.col(counter).isNotNull(), known)


def _fresh(known: str, value: Column) -> Column:
    then = F.col(f"{known}.told")
    # By the time of the sample, and not of what it tells: an hour must not depend on samples later than `MEMORY`.
    return F.when((F.col("told") > then) & (F.col("at") - then <= MEMORY * 1_000_000), value)


def _whole(polls: DataFrame) -> DataFrame:
    """One row: the times of the polls at which a queue without a sample was not there."""
    return _good(polls).where("whole").agg(F.collect_set("at").alias("wholes"))


def _by_minute(polls: DataFrame) -> DataFrame:
    """The times of the polls of each minute."""
    return _good(polls).groupBy(F.expr(f"at - at % {_MINUTE}").alias("minute")).agg(F.collect_set("at").alias("times"))


def _good(polls: DataFrame) -> DataFrame:
    rows = polls.select(*POLL_SAMPLES.names).where((F.col("family") == "queues") & F.col("success"))
    return rows.select(F.unix_micros("at").alias("at"), "whole")


def _until() -> Column:
    """When a sample holds no more."""
    whole = F.expr("array_min(filter(wholes, whole -> whole > at))")
    return F.when(F.col("gone"), F.col("at")).otherwise(
        F.least(F.col("at") + round(HEARTBEAT * 1_000_000), "next", whole)
    )


def _minutes() -> str:
    """The minutes that a sample says something of: where it holds, and where its increases lie."""
    befores = ", ".join(f"{name}_before.told" for name in COUNTERS)
    first, last = f"least(at, told, {befores})", "greatest(at, told, until - 1)"
    return f"sequence({first} - {first} % {_MINUTE}, {last} - {last} % {_MINUTE}, {_MINUTE}L)"


def _polls() -> str:
    """At how many polls of this minute a sample holds: its own, and those that follow."""
    later = "size(filter(coalesce(times, array()), poll -> poll > at AND poll < until))"
    return f"{later} + if(NOT gone AND at >= minute AND at < minute + {_MINUTE}, 1, 0)"


def _levels() -> list[Column]:
    def held(name: str) -> Column:
        return F.when(F.col("polls") > 0, F.col(name))

    def last(name: str) -> Column:
        return F.max_by(name, held("at"))

    return [
        F.max("queue_type").alias("queue_type"),
        F.sum("polls").alias("samples"),
        F.max(held("messages_ready")).alias("messages_ready_max"),
        last("messages_ready").alias("messages_ready_last"),
        F.max(held("messages_unacked")).alias("messages_unacked_max"),
        last("messages_unacked").alias("messages_unacked_last"),
        F.min(held("consumers")).alias("consumers_min"),
        last("consumers").alias("consumers_last"),
    ]


def _grown(counter: str) -> Column:
    """How much a counter grew in this minute; null where that cannot be told.

    A fall means that the queue or the broker's statistics began anew: the new value counts. Where a sample holds, the
    counters that it told as of its own poll stand still.
    """
    before = f"{counter}_before"
    grown = f"if({counter} >= {before}.value, {counter} - {before}.value, {counter})"

    def share(moment: str) -> str:
        return f"cast(floor({grown} * (({moment} - {before}.told) / (told - {before}.told))) AS bigint)"

    start, end = f"greatest({before}.told, minute)", f"least(told, minute + {_MINUTE})"
    inside = f"{before} IS NOT NULL AND minute <= told AND minute + {_MINUTE} > {before}.told"
    still = f"polls > 0 AND at < minute AND NOT older AND {counter} IS NOT NULL"
    return F.sum(F.expr(f"CASE WHEN {inside} THEN {share(end)} - {share(start)} WHEN {still} THEN 0L END"))

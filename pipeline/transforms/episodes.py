"""finding_events -> episodes: each finding from its beginning to its end.

The exporter reports changes, and a restart loses its open findings. Its rows are read as follows:

- `found` (at its start) for an open finding: it continues. A rule may need minutes of readings before it can decide, so
  `began` continues the finding, too, if the exporter started at most `SETTLING_SECONDS` before.
- An open finding that was not reported within `SETTLING_SECONDS` of such a start is over, at an unknown time: `ended`
  is null and `lasts` is false. If it is reported later, that is another episode.
- `began` for an open finding without a restart in between: the row of its end was lost; that is another episode, too.
- An end or a change without a reported beginning: it began before, as with `found`.

Events are retained for days, episodes for long: episodes older than the first retained event are carried over.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.findings import Severity
from ackscope.tables import EPISODES, FINDING_EVENTS
from pipeline.transforms.common import distinct_rows

# Time after its start in which an exporter reports active findings again.
SETTLING_SECONDS = 900

_FINDING_KEY = ("rule", "kind", "vhost", "name")
_EVENT_COLUMNS = ("at", "step", *_FINDING_KEY, "event", "severity", "node", "summary")


def episodes(events: DataFrame, polls: DataFrame, known: DataFrame) -> DataFrame:
    """One row per episode.

    Args:
        events: all retained rows of `FINDING_EVENTS`.
        polls: all retained rows of `POLLS_1M`; they show when an exporter started.
        known: the episodes as computed before.
    """
    rows = distinct_rows(events.select(*FINDING_EVENTS.names), FINDING_EVENTS.key)
    history = rows.withColumn("step", F.lit(0)).select(*_EVENT_COLUMNS).unionByName(_events_of_known(known, rows))
    own = Window.partitionBy(*_FINDING_KEY).orderBy("at", "step")
    numbered = (
        history.crossJoin(F.broadcast(_restarts(polls, rows)))
        .select("*", F.lag("event").over(own).alias("event_before"), F.lag("at").over(own).alias("at_before"))
        .withColumn("look", _restart_after("at_before"))
        .withColumn("number", F.sum(_is_new().cast("int")).over(own))
    )
    found = numbered.groupBy(*_FINDING_KEY, "number", "looks", "newest").agg(
        F.min("at").alias("began"),
        F.max(F.when(F.col("event") == "ended", F.col("at"))).alias("ended"),
        F.max("at").alias("last_told"),
        (F.min_by("event", F.struct("at", "step")) != "began").alias("found"),
        _worst().alias("severity"),
        *(_latest(name).alias(name) for name in ("node", "summary")),
        F.max_by("event", F.struct("at", "step")).isin("ended", "lost").alias("over"),
    )
    return (
        found.withColumn("latest", F.max("number").over(Window.partitionBy(*_FINDING_KEY)))
        .withColumn("look", _restart_after("last_told"))
        .withColumn("lasts", ~F.col("over") & (F.col("number") == F.col("latest")) & ~_not_reported("newest"))
        .select(*EPISODES.names)
    )


def _events_of_known(known: DataFrame, rows: DataFrame) -> DataFrame:
    """Known episodes from before the first event, as events; `lost` is an end at an unknown time."""
    # An episode that was reported again later was still open at the first event.
    history = F.least("last_told", F.col("first") - F.expr("INTERVAL 1 MICROSECOND"))
    moments = F.array(
        F.struct(F.col("began").alias("at"), F.lit(0).alias("step"), _if(F.col("found"), "found", "began")),
        F.struct(history.alias("at"), F.lit(1).alias("step"), F.lit("changed").alias("event")),
        F.struct(F.col("ended").alias("at"), F.lit(2).alias("step"), F.lit("ended").alias("event")),
        F.struct(
            F.when(F.col("ended").isNull() & ~F.col("lasts"), F.col("last_told")).alias("at"),
            F.lit(3).alias("step"),
            F.lit("lost").alias("event"),
        ),
    )
    first = rows.agg(F.min("at").alias("first"))
    before = F.col("first").isNull() | (F.col("moment.at") < F.col("first"))
    return (
        known.select(*EPISODES.names)
        .crossJoin(F.broadcast(first))
        .where(F.col("first").isNull() | (F.col("began") < F.col("first")))
        .withColumn("moment", F.explode(moments))
        .where(F.col("moment.at").isNotNull() & before)
        .select("moment.*", *_FINDING_KEY, "severity", "node", "summary")
        .select(*_EVENT_COLUMNS)
    )


def _if(condition: Column, yes: str, no: str) -> Column:
    return F.when(condition, F.lit(yes)).otherwise(F.lit(no)).alias("event")


def _restarts(polls: DataFrame, rows: DataFrame) -> DataFrame:
    """One row: the minutes in which an exporter started, and the time of the newest data."""
    began = F.when((F.col("family") == "queues") & (F.col("wholes") > 0), F.col("minute"))
    minutes = polls.agg(F.sort_array(F.collect_set(began)).alias("looks"), F.max("minute").alias("polled"))
    latest = rows.agg(F.max("at").alias("told"))
    return minutes.crossJoin(latest).select("looks", F.greatest("polled", "told").alias("newest"))


def _restart_after(moment: str) -> Column:
    """The first exporter start after a time; null without one."""
    return F.expr(f"array_min(filter(looks, look -> look > {moment}))")


def _not_reported(until: str) -> Column:
    """Whether an exporter started, had time to report the finding until then, and did not."""
    late = F.unix_micros("look") + SETTLING_SECONDS * 1_000_000 < F.unix_micros(F.col(until))
    return F.coalesce(late, F.lit(False))


def _is_new() -> Column:
    """Whether an event is the first of an episode."""
    closed = F.col("event_before").isNull() | F.col("event_before").isin("ended", "lost")
    no_restart = F.col("look").isNull() | (F.col("look") > F.col("at"))
    reopened = F.col("event").isin("found", "began") & (
        _not_reported("at") | ((F.col("event") == "began") & no_restart)
    )
    return closed | reopened


def _worst() -> Column:
    order = F.array(*(F.lit(severity.value) for severity in Severity))
    return F.min_by("severity", F.array_position(order, F.col("severity")))


def _latest(name: str) -> Column:
    return F.max_by(name, F.when(F.col(name).isNotNull(), F.struct("at", "step")))

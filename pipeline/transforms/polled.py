"""Polls by number, so that how many of them lie between two moments is a difference.

Where a poll stands among the others is looked up in its minute: what a row costs does not grow with how many polls
there are, and Spark generates code for all that is done once a minute and object.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT

MINUTE = 60_000_000
"""Microseconds, as all times here."""

_HOLDS = round(HEARTBEAT * 1_000_000)
_BEFORE = -(-_HOLDS // MINUTE) * MINUTE
_BEYOND = 1 << 62


def numbered(polls: DataFrame) -> DataFrame:
    """The polls of each minute: how many were before it, and before its end.

    Args:
        polls: `at`, and `whole`: what has no row at this one was not there.

    Returns:
        One row a minute up to the last poll, from so long before the first one that a sample can hold until it:
        `minute`; `first`, `end`: numbers of polls before it and before its end; `times`: those of it; `wholes`: those
        of it that are whole; `later`: the first whole one after it, or null.
    """
    # They are few: all in one task.
    taken = (
        polls.coalesce(1)
        .groupBy(_minute("at"))
        .agg(F.collect_set("at").alias("times"), F.collect_set(F.when(F.col("whole"), F.col("at"))).alias("wholes"))
    )
    # Spark warns of a window that names no part.
    order = Window.partitionBy(F.shiftright("minute", 62)).orderBy("minute")
    back = Window.partitionBy(F.shiftright("minute", 62)).orderBy(F.desc("minute"))
    earlier, later = (it.rowsBetween(Window.unboundedPreceding, Window.currentRow - 1) for it in (order, back))
    gap = F.expr(f"sequence(if(last IS NULL, taken - {_BEFORE}, taken), coalesce(next - {MINUTE}, taken), {MINUTE}L)")
    return (
        taken.select(
            F.col("minute").alias("taken"),
            "times",
            "wholes",
            F.coalesce(F.sum(F.size("times")).over(earlier), F.lit(0)).alias("first"),
            F.lag("minute").over(order).alias("last"),
            F.lead("minute").over(order).alias("next"),
            F.min(F.array_min("wholes")).over(later).alias("later"),
        )
        .withColumn("minute", F.explode(gap))
        .select(
            "minute",
            F.expr("if(minute > taken, first + size(times), first)").alias("first"),
            F.expr("if(minute < taken, first, first + size(times))").alias("end"),
            *(F.expr(f"if(minute = taken, {name}, array())").alias(name) for name in ("times", "wholes")),
            F.expr("if(minute < taken, coalesce(array_min(wholes), later), later)").alias("later"),
        )
    )


def held_until(samples: DataFrame, minutes: DataFrame) -> DataFrame:
    """Samples with when they hold no more, and between which polls they do.

    Args:
        samples: `at`, `next`: when the next one of the same object came, or null, `gone`, and more.
        minutes: made by `numbered`.

    Returns:
        With `until`; `low`, `high`: numbers of polls up to `at`, and before `until`; of a moment in no minute of these,
        none and very many: no minute between the two is counted too much.
    """
    then = F.array_min(F.expr("filter(wholes, whole -> whole > at)"))
    until = F.least(F.col("at") + _HOLDS, "next", F.coalesce(then, "later"))
    low = F.expr("first + size(filter(times, poll -> poll <= at))")
    high = F.expr("first + size(filter(times, poll -> poll < until))")
    found = samples.withColumn("minute", _minute("at")).join(F.broadcast(minutes), "minute", "left")
    found = found.select(
        *samples.columns,
        F.coalesce(low, F.lit(0)).alias("low"),
        F.when(F.col("gone"), F.col("at")).otherwise(until).alias("until"),
    )
    told = found.columns
    found = found.withColumn("minute", _minute("until")).join(F.broadcast(minutes), "minute", "left")
    return found.select(*told, F.coalesce(high, F.lit(_BEYOND)).alias("high"))


def at_polls(spread: DataFrame, minutes: DataFrame) -> DataFrame:
    """Samples by `minute`, with `polls`: at how many of this minute each holds, its own and those that follow."""
    later = "greatest(least(high, end) - greatest(low, first), 0)"
    own = f"if(NOT gone AND at >= minute AND at < minute + {MINUTE}, 1, 0)"
    found = spread.join(F.broadcast(minutes), "minute", "left")
    # Minutes before its own are those of its increases alone.
    none = f"first IS NULL OR minute + {MINUTE} <= at"
    return found.select(*spread.columns, F.expr(f"if({none}, 0, {later}) + {own}").alias("polls"))


def _minute(time: str) -> Column:
    return F.expr(f"{time} - {time} % {MINUTE}").alias("minute")

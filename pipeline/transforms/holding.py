"""Tables of changes -> minutes: levels at every poll, and counters as increases.

The samples tell changes; what they say holds until the next one, at the polls that succeeded, and `HEARTBEAT` seconds
at most (`ackscope.tables.QUEUE_SAMPLES`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT, POLL_SAMPLES, Table
from pipeline.hours import REACH
from pipeline.transforms.polled import MINUTE, at_polls, held_until, numbered

MEMORY = REACH
"""Seconds: an increase over a longer silence is unknown. Of two heartbeats, the earlier one may tell older counters."""

MOST = round(HEARTBEAT) // 60
"""Minutes that a sample holds at most, each a row."""


@dataclass(frozen=True, slots=True)
class Holding:
    """How a table of changes becomes minutes.

    Attributes:
        source: the table of changes.
        family: of the polls that say that its rows still hold.
        levels: columns that hold until the next row.
        counters: column that counts since its object exists -> its increase of a minute.
        births: an object without a row did not exist, and had counted nothing; else it was only not followed, and
            nothing is known of it.
    """

    source: Table
    family: str
    levels: Sequence[str]
    counters: Mapping[str, str] = field(default_factory=dict)
    births: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell objects apart."""
        return tuple(name for name in self.source.key if name != self.source.time)

    def minutes(
        self, samples: DataFrame, polls: DataFrame, levels: Sequence[Column], wanted: DataFrame | None = None
    ) -> DataFrame:
        """One row a minute and object, with these levels and what each counter grew by.

        An increase is spread evenly over the time between the two samples that tell it, so that minutes add up to the
        whole and none is a peak that never was. A minute depends on samples `MEMORY` seconds before and after it.

        Args:
            samples: rows of `source`.
            polls: rows of `POLL_SAMPLES`.
            levels: aggregates, made by `held`, `last` and `count_polls`.
            wanted: one row: `start` and `end` of the minutes that are asked for, microseconds; all where it is None.
        """
        good = numbered(self._good(polls))
        grown = [self._share(counter).alias(name) for counter, name in self.counters.items()]
        known = F.col("samples") > 0
        spread = self._spread(held_until(self._known(samples), good), wanted)
        return (
            at_polls(spread, good)
            .groupBy(*self.key, "minute")
            .agg(F.sum("polls").alias("samples"), *levels, *grown)
            .where(known | F.coalesce(*self.counters.values()).isNotNull() if grown else known)
            .withColumn("minute", F.timestamp_micros("minute"))
        )

    def _good(self, polls: DataFrame) -> DataFrame:
        rows = polls.select(*POLL_SAMPLES.names).where((F.col("family") == self.family) & F.col("success"))
        return rows.select(F.unix_micros("at").alias("at"), "whole")

    def _known(self, samples: DataFrame) -> DataFrame:
        """Each sample once with what was known before it, and when the next one came; times in microseconds."""
        own = Window.partitionBy("_hash", *self.key).orderBy("at")
        earlier = own.rangeBetween(Window.unboundedPreceding, -1)
        then = {f"{name}_then": F.col(name) for name in self.counters}
        if then:
            then["any_then"] = F.coalesce(*self.counters)
        rows = self._in_order(samples).select(
            "*",
            F.lead("at").over(own).alias("next"),
            *(_last_known(value).over(earlier).alias(name) for name, value in then.items()),
        )
        # Of rows that share a key and differ, the greatest stays, which stands last.
        once = rows.where(F.col("next").isNull() | (F.col("next") > F.col("at")))
        kept = ("at", "told", "gone", "older", "next", *self.key, *self.levels, *self.counters)
        before = {name: _before(name) for name in self.counters}
        return once.select(*kept, *(value.alias(f"{name}_before") for name, value in before.items())).select(
            *kept,
            *(F.col(f"{name}_before.told").alias(f"{name}_since") for name in before),
            *(_grown(name).alias(f"{name}_grown") for name in before),
        )

    def _in_order(self, samples: DataFrame) -> DataFrame:
        """Samples by object and time."""
        gone, at = F.coalesce("gone", F.lit(False)), F.unix_micros("at")
        late = "details_at" in self.source.names
        absent = F.lit(0) if self.births else F.lit(None).cast("long")
        rows = samples.select(
            # Sorting compares numbers many times faster than text.
            F.xxhash64(*self.key).alias("_hash"),
            *self.key,
            at.alias("at"),
            (F.least(F.unix_micros("details_at"), at) if late else at).alias("told"),
            gone.alias("gone"),
            (F.col("details_at").isNotNull() if late else F.lit(False)).alias("older"),
            *self.levels,
            *(F.when(gone, absent).otherwise(F.col(name)).alias(name) for name in self.counters),
        )
        order = ("_hash", *self.key, "at")
        rest = [name for name in rows.columns if name not in order]
        return rows.repartition(*self.key).sortWithinPartitions(*order, *rest)

    def _spread(self, rows: DataFrame, wanted: DataFrame | None) -> DataFrame:
        """Samples by the minutes that they say something of: where they hold, and where their increases lie."""
        named = ", ".join(("at", "told", *(f"{name}_since" for name in self.counters)))
        first, last = f"least({named})", "greatest(at, told, until - 1)"
        first, last = (f"{moment} - {moment} % {MINUTE}" for moment in (first, last))
        told = rows.columns
        if wanted is not None:
            first, last = f"greatest({first}, start)", f"least({last}, end - {MINUTE})"
            rows = rows.crossJoin(wanted).where(F.expr(f"{first} <= {last}"))
        return rows.select(*told, F.expr(f"explode(sequence({first}, {last}, {MINUTE}L)) AS minute"))

    def _share(self, counter: str) -> Column:
        """How much a counter grew in this minute; null where that cannot be told.

        Where a sample holds, the counters that it told as of its own poll stand still.
        """
        since = f"{counter}_since"

        def share(moment: str) -> str:
            return f"cast(floor({counter}_grown * (({moment} - {since}) / (told - {since}))) AS bigint)"

        start, end = f"greatest({since}, minute)", f"least(told, minute + {MINUTE})"
        inside = f"{since} IS NOT NULL AND minute <= told AND minute + {MINUTE} > {since}"
        still = f"polls > 0 AND at < minute AND NOT older AND {counter} IS NOT NULL"
        return F.sum(F.expr(f"CASE WHEN {inside} THEN {share(end)} - {share(start)} WHEN {still} THEN 0L END"))


def held(name: str) -> Column:
    """A level where it holds at a poll of the minute, else null."""
    return F.when(F.col("polls") > 0, F.col(name))


def last(name: str) -> Column:
    """The level at the last poll of the minute."""
    return F.max_by(name, held("at"))


def count_polls(where: Column) -> Column:
    """At how many polls of the minute something held."""
    return F.sum(F.when(where, F.col("polls")).otherwise(0))


def _last_known(value: Column) -> Column:
    """What an earlier sample of this object last knew, and of when: {told, value}, or null.

    That one which is no more followed knows nothing, is knowledge, too: {told, null}.
    """
    return F.last(F.when(value.isNotNull() | F.col("gone"), F.struct("told", value.alias("value"))), ignorenulls=True)


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
    near = (F.col("told") > then) & (F.col("at") - then <= MEMORY * 1_000_000)
    return F.when(near & F.col(f"{known}.value").isNotNull(), value)


def _grown(counter: str) -> Column:
    """By how much.

    A fall means that the object or the broker's statistics began anew: the new value counts.
    """
    value, before = F.col(counter), F.col(f"{counter}_before.value")
    return F.when(value >= before, value - before).otherwise(value)

"""Tables of changes -> minutes: levels at every poll, and counters as increases.

The samples tell changes; what they say holds until the next one, at the polls that succeeded, and `HEARTBEAT` seconds
at most (`ackscope.tables.QUEUE_SAMPLES`).

Written as SQL: each part of an expression that Python builds is a request to Java, some thousands for a batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT, Table
from pipeline.hours import REACH
from pipeline.transforms.polled import MINUTE, count_polls_per_minute, hold_until, number_polls

LOOKBACK_SECONDS = REACH
"""Seconds: an increase over a longer silence is unknown. Of two heartbeats, the earlier one may tell older counters."""

MAX_HOLD_MINUTES = round(HEARTBEAT) // 60
"""Minutes that a sample holds at most, each a row; those before it that its increases lie in are mostly others' too."""


@dataclass(frozen=True, slots=True)
class SampleHold:
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
    starts_at_zero: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that tell objects apart."""
        return tuple(name for name in self.source.key if name != self.source.time)

    def minutes(
        self, samples: DataFrame, polls: DataFrame, levels: Mapping[str, str], bounds: DataFrame | None = None
    ) -> DataFrame:
        """One row a minute and object, with these levels and what each counter grew by.

        An increase is spread evenly over the time between the two samples that tell it, so that minutes add up to the
        whole and none is a peak that never was. A minute depends on samples `MEMORY` seconds before and after it.

        Args:
            samples: rows of `source`.
            polls: rows of `POLL_SAMPLES`.
            levels: column -> aggregate, made with `held`, `last` and `count_polls`.
            wanted: one row: `start` and `end` of the minutes that are asked for, microseconds; all where it is None.
        """
        good = number_polls(
            polls.where(f"family = '{self.family}' AND success").selectExpr("unix_micros(at) AS at", "whole")
        )
        found = count_polls_per_minute(self._by_minute(hold_until(self._with_baseline(samples), good), bounds), good)
        aggregates = {
            "samples": "sum(polls)",
            **levels,
            **{name: self._minute_share(key) for key, name in self.counters.items()},
        }
        conditions = ["samples > 0", *(f"{name} IS NOT NULL" for name in self.counters.values())]
        return (
            found.groupBy(*self.key, "minute")
            .agg(*(F.expr(f"{value} AS {name}") for name, value in aggregates.items()))
            .where(" OR ".join(conditions))
            .withColumn("minute", F.timestamp_micros("minute"))
        )

    def _with_baseline(self, samples: DataFrame) -> DataFrame:
        """Each sample once with what was known before it, and when the next one came; times in microseconds."""
        own = f"PARTITION BY _hash, {', '.join(self.key)} ORDER BY at"
        earlier = f"({own} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        then = {name: name for name in self.counters}
        if then:
            then["any"] = f"coalesce({', '.join(self.counters)})"
        rows = self._sorted(samples).selectExpr(
            "*",
            f"lead(at) OVER ({own}) AS next",
            *(f"{_last_reading(value)} OVER {earlier} AS {name}_then" for name, value in then.items()),
        )
        columns = ("at", "told", "gone", "older", "next", *self.key, *self.levels, *self.counters)
        return (
            # Of rows that share a key and differ, the greatest stays, which stands last.
            rows.where("next IS NULL OR next > at")
            .selectExpr(*columns, *(f"{_baseline(name)} AS {name}_before" for name in self.counters))
            .selectExpr(
                *columns,
                *(f"{name}_before.told AS {name}_since" for name in self.counters),
                *(f"{_increase(name)} AS {name}_grown" for name in self.counters),
            )
        )

    def _sorted(self, samples: DataFrame) -> DataFrame:
        """Samples by object and time."""
        is_gone, at, late = "coalesce(gone, false)", "unix_micros(at)", "details_at" in self.source.names
        absent = "0" if self.starts_at_zero else "NULL"
        counters = (f"if({is_gone}, {absent}, {name}) AS {name}" for name in self.counters)
        order = ("_hash", *self.key, "at")
        rest = ("told", "gone", "older", *self.levels, *self.counters)
        rows = samples.selectExpr(
            # Sorting compares numbers many times faster than text.
            f"xxhash64({', '.join(self.key)}) AS _hash",
            *self.key,
            f"{at} AS at",
            f"least(unix_micros(details_at), {at}) AS told" if late else f"{at} AS told",
            f"{is_gone} AS gone",
            "details_at IS NOT NULL AS older" if late else "false AS older",
            *self.levels,
            *counters,
        )
        return rows.repartition(*self.key).sortWithinPartitions(*order, *rest)

    def _by_minute(self, rows: DataFrame, bounds: DataFrame | None) -> DataFrame:
        """Samples by the minutes that they say something of: where they hold, and where their increases lie."""
        named = ", ".join(("at", "told", *(f"{name}_since" for name in self.counters)))
        first, at_last_poll = f"least({named})", "greatest(at, told, until - 1)"
        first, at_last_poll = (f"{moment} - {moment} % {MINUTE}" for moment in (first, at_last_poll))
        aggregates = rows.columns
        if bounds is not None:
            first, at_last_poll = f"greatest({first}, start)", f"least({at_last_poll}, end - {MINUTE})"
            rows = rows.crossJoin(bounds).where(f"{first} <= {at_last_poll}")
        return rows.selectExpr(*aggregates, f"explode(sequence({first}, {at_last_poll}, {MINUTE}L)) AS minute")

    def _minute_share(self, counter: str) -> str:
        """How much a counter grew in this minute; null where that cannot be told.

        Where a sample holds, the counters that it told as of its own poll stand still.
        """
        since = f"{counter}_since"

        def at_moment(moment: str) -> str:
            return f"cast(floor({counter}_grown * (({moment} - {since}) / (told - {since}))) AS bigint)"

        start, end = f"greatest({since}, minute)", f"least(told, minute + {MINUTE})"
        inside = f"{since} IS NOT NULL AND minute <= told AND minute + {MINUTE} > {since}"
        unchanged = f"polls > 0 AND at < minute AND NOT older AND {counter} IS NOT NULL"
        return f"sum(CASE WHEN {inside} THEN {at_moment(end)} - {at_moment(start)} WHEN {unchanged} THEN 0L END)"


def at_poll(name: str) -> str:
    """A level where it holds at a poll of the minute, else null."""
    return f"if(polls > 0, {name}, NULL)"


def at_last_poll(name: str) -> str:
    """The level at the last poll of the minute."""
    return f"max_by({name}, {at_poll('at')})"


def count_polls(where: str) -> str:
    """At how many polls of the minute something held."""
    return f"sum(if({where}, polls, 0))"


def _last_reading(value: str) -> str:
    """What an earlier sample of this object last knew, and of when: {told, value}, or null.

    That one which is no more followed knows nothing, is knowledge, too: {told, null}.
    """
    return f"last(if({value} IS NOT NULL OR gone, {_reading('told', value)}, NULL), true)"


def _baseline(counter: str) -> str:
    """Where an increase starts: {told, value}; null where it cannot be told.

    The broker leaves a counter out before its first event, so where earlier samples had only others, this one stood
    at zero; where they had none, nothing was asked or told, and the increase is unknown.
    """
    other = _if_recent("any_then", _reading("any_then.told", "0L"))
    return f"if(NOT gone AND {counter} IS NOT NULL, coalesce({_if_recent(f'{counter}_then')}, {other}), NULL)"


def _if_recent(conditions: str, value: str = "") -> str:
    then = f"{conditions}.told"
    # By the time of the sample, and not of what it tells: an hour must not depend on samples later than `MEMORY`.
    near = f"told > {then} AND at - {then} <= {LOOKBACK_SECONDS * 1_000_000}"
    return f"if({near} AND {conditions}.value IS NOT NULL, {value or conditions}, NULL)"


def _reading(aggregates: str, value: str) -> str:
    return f"named_struct('told', {aggregates}, 'value', {value})"


def _increase(counter: str) -> str:
    """By how much.

    A fall means that the object or the broker's statistics began anew: the new value counts.
    """
    before = f"{counter}_before.value"
    return f"if({counter} >= {before}, {counter} - {before}, {counter})"

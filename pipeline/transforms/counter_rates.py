"""Tables of changes -> minutes: levels at every poll, and counters as increases.

A sample holds until the next one, at successful polls, and for at most `HEARTBEAT` seconds
(`ackscope.tables.QUEUE_SAMPLES`).

Written as SQL text: each node of an expression built in Python is a call into Java, some thousands per batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import HEARTBEAT, Table
from pipeline.hours import REACH
from pipeline.transforms.polled import MINUTE, count_polls_per_minute, hold_until, number_polls

# An increase over a longer silence is unknown. The earlier of two heartbeats may have older counters.
LOOKBACK_SECONDS = REACH

# Maximum minutes that a sample holds, one rollup row each. Its increases lie in minutes before it, which mostly have
# rows from earlier samples.
MAX_HOLD_MINUTES = round(HEARTBEAT) // 60


@dataclass(frozen=True, slots=True)
class SampleHold:
    """Last-value-hold and counter increases of one table of changes.

    Attributes:
        source: the table of changes.
        family: endpoint family whose polls confirm that its rows still hold.
        levels: columns that hold until the next row.
        counters: counter column -> name of its increase per minute.
        starts_at_zero: whether an object without an earlier row did not exist, so that its counters were zero. If
            False, it was only not followed, and its counters were unknown.
    """

    source: Table
    family: str
    levels: Sequence[str]
    counters: Mapping[str, str] = field(default_factory=dict)
    starts_at_zero: bool = False

    def key(self, scope: Sequence[str]) -> tuple[str, ...]:
        """The columns that identify an object."""
        return (*scope, *(name for name in self.source.key if name != self.source.time))

    def minutes(
        self,
        samples: DataFrame,
        polls: pa.Table,
        levels: Mapping[str, str],
        bounds: DataFrame | None = None,
        scope: Sequence[str] = (),
    ) -> DataFrame:
        """One row per minute and object, with these levels and the increase of each counter.

        An increase is spread evenly over the time between its two samples, so that minutes add up to the total and no
        minute has a false peak. A minute depends on samples up to `LOOKBACK_SECONDS` before and after it.

        Args:
            samples: rows of `source`.
            polls: rows of `POLL_SAMPLES`, and the scope.
            levels: column -> aggregate, made with `at_poll`, `at_last_poll` and `count_polls`.
            bounds: one row with `start` and `end` of the minutes to return, microseconds; None returns all.
            scope: columns of text, of both, that are part of every key.
        """
        key, by = self.key(scope), (*scope, "minute")
        read = polls.filter((pc.field("family") == self.family) & pc.field("success"))
        good = number_polls(samples.sparkSession, read, scope)
        held = hold_until(self._with_baseline(samples, key), good, by)
        found = count_polls_per_minute(self._by_minute(held, bounds), good, by)
        aggregates = {
            "samples": "sum(polls)",
            **levels,
            **{name: self._minute_share(key) for key, name in self.counters.items()},
        }
        conditions = ["samples > 0", *(f"{name} IS NOT NULL" for name in self.counters.values())]
        return (
            found.groupBy(*key, "minute")
            .agg(*(F.expr(f"{value} AS {name}") for name, value in aggregates.items()))
            .where(" OR ".join(conditions))
            .withColumn("minute", F.timestamp_micros("minute"))
        )

    def _with_baseline(self, samples: DataFrame, key: Sequence[str]) -> DataFrame:
        """Each sample once, with the counters known before it and the time of the next one; times in microseconds."""
        own = f"PARTITION BY _hash, {', '.join(key)} ORDER BY at"
        earlier = f"({own} RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
        then = {name: name for name in self.counters}
        if then:
            then["any"] = f"coalesce({', '.join(self.counters)})"
        rows = self._sorted(samples, key).selectExpr(
            "*",
            f"lead(at) OVER ({own}) AS next",
            *(f"{_last_reading(value)} OVER {earlier} AS {name}_then" for name, value in then.items()),
        )
        columns = ("at", "known_at", "gone", "older", "next", *key, *self.levels, *self.counters)
        return (
            # Of rows with the same key and different values, the greatest stays; it is sorted last.
            rows.where("next IS NULL OR next > at")
            .selectExpr(*columns, *(f"{_baseline(name)} AS {name}_before" for name in self.counters))
            .selectExpr(
                *columns,
                *(f"{name}_before.known_at AS {name}_since" for name in self.counters),
                *(f"{_increase(name)} AS {name}_grown" for name in self.counters),
            )
        )

    def _sorted(self, samples: DataFrame, key: Sequence[str]) -> DataFrame:
        """Samples by object and time."""
        tombstone, at, late = "coalesce(gone, false)", "unix_micros(at)", "details_at" in self.source.names
        absent = "0" if self.starts_at_zero else "NULL"
        counters = (f"if({tombstone}, {absent}, {name}) AS {name}" for name in self.counters)
        order = ("_hash", *key, "at")
        rest = ("known_at", "gone", "older", *self.levels, *self.counters)
        rows = samples.selectExpr(
            # Sorting compares numbers many times faster than text.
            f"xxhash64({', '.join(key)}) AS _hash",
            *key,
            f"{at} AS at",
            f"least(unix_micros(details_at), {at}) AS known_at" if late else f"{at} AS known_at",
            f"{tombstone} AS gone",
            "details_at IS NOT NULL AS older" if late else "false AS older",
            *self.levels,
            *counters,
        )
        return rows.repartition(*key).sortWithinPartitions(*order, *rest)

    def _by_minute(self, rows: DataFrame, bounds: DataFrame | None) -> DataFrame:
        """One row per sample and minute that it affects: it holds in this minute, or an increase lies in it."""
        named = ", ".join(("at", "known_at", *(f"{name}_since" for name in self.counters)))
        first, last = f"least({named})", "greatest(at, known_at, until - 1)"
        first, last = (f"{moment} - {moment} % {MINUTE}" for moment in (first, last))
        columns = rows.columns
        if bounds is not None:
            first, last = f"greatest({first}, start)", f"least({last}, end - {MINUTE})"
            rows = rows.crossJoin(bounds).where(f"{first} <= {last}")
        return rows.selectExpr(*columns, f"explode(sequence({first}, {last}, {MINUTE}L)) AS minute")

    def _minute_share(self, counter: str) -> str:
        """The increase of a counter in this minute; null if unknown.

        While a sample holds, its counters do not grow, unless they are older than its poll.
        """
        since = f"{counter}_since"

        def at_moment(moment: str) -> str:
            return f"cast(floor({counter}_grown * (({moment} - {since}) / (known_at - {since}))) AS bigint)"

        start, end = f"greatest({since}, minute)", f"least(known_at, minute + {MINUTE})"
        inside = f"{since} IS NOT NULL AND minute <= known_at AND minute + {MINUTE} > {since}"
        unchanged = f"polls > 0 AND at < minute AND NOT older AND {counter} IS NOT NULL"
        return f"sum(CASE WHEN {inside} THEN {at_moment(end)} - {at_moment(start)} WHEN {unchanged} THEN 0L END)"


def at_poll(name: str) -> str:
    """A level if it holds at a poll of the minute, else null."""
    return f"if(polls > 0, {name}, NULL)"


def at_last_poll(name: str) -> str:
    """The level at the last poll of the minute."""
    return f"max_by({name}, {at_poll('at')})"


def count_polls(where: str) -> str:
    """The number of polls of the minute at which a condition held."""
    return f"sum(if({where}, polls, 0))"


def _last_reading(value: str) -> str:
    """The last known value of earlier samples with its time: {known_at, value}, or null.

    A tombstone counts as a known (null) value.
    """
    return f"last(if({value} IS NOT NULL OR gone, {_reading('known_at', value)}, NULL), true)"


def _baseline(counter: str) -> str:
    """The reading that an increase starts from: {known_at, value}; null if unknown.

    The broker omits a counter before its first event. If earlier samples had only other counters, this one was zero. If
    they had no counters, the statistics were not read, and the increase is unknown.
    """
    other = _if_recent("any_then", _reading("any_then.known_at", "0L"))
    return f"if(NOT gone AND {counter} IS NOT NULL, coalesce({_if_recent(f'{counter}_then')}, {other}), NULL)"


def _if_recent(reading: str, value: str = "") -> str:
    then = f"{reading}.known_at"
    # Compares the time of the sample, not of its counters: an hour must not depend on samples after the lookback.
    near = f"known_at > {then} AND at - {then} <= {LOOKBACK_SECONDS * 1_000_000}"
    return f"if({near} AND {reading}.value IS NOT NULL, {value or reading}, NULL)"


def _reading(known_at: str, value: str) -> str:
    return f"named_struct('known_at', {known_at}, 'value', {value})"


def _increase(counter: str) -> str:
    """The increase of a counter.

    A fall means that the object or the broker's statistics were reset; the increase is then the new value.
    """
    before = f"{counter}_before.value"
    return f"if({counter} >= {before}, {counter} - {before}, {counter})"

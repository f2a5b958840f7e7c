"""What the transforms share: the minute of a row, duplicates, and sums that do not depend on order."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import PROBE_MESSAGES

STREAM = ("probe", "stream", "queue_type", "vhost", "node")
"""The columns that name a probe's stream."""

_NANO = 1_000_000_000
_LONGEST = 1e8
"""Seconds, three years: nothing that is measured here lasts longer, and a sum of nanoseconds stays an int64."""


def minute(time: str) -> Column:
    """The start of the minute of a timestamp column."""
    return F.date_trunc("minute", F.col(time)).alias("minute")


MESSAGE = tuple(reversed(PROBE_MESSAGES.key))
"""What tells messages apart, the number first: sorting compares numbers many times faster than text."""


def distinct_rows(rows: DataFrame, key: Sequence[str], together: Sequence[str] = ()) -> DataFrame:
    """One row a key, whatever was delivered twice: a file that was copied must not count again.

    Of rows that share a key and differ, the greatest stays, so that the result does not depend on their order.
    Rows are spread over the tasks once, by `together` or else by the key, and leave in the order of the key.
    """
    rest = [name for name in rows.columns if name not in key]
    spread = rows.repartition(*(together or key))
    return spread.groupBy(*key).agg(F.max(F.struct(*rest)).alias("row")).select(*key, "row.*")


def duration(name: str) -> Column:
    """A column of seconds where it holds a duration, else null: NaN and infinity would poison every sum."""
    value = F.col(name)
    return F.when((value >= 0) & (value <= _LONGEST), value)


def nanoseconds(value: Column) -> Column:
    """The sum of a column of seconds, as whole nanoseconds.

    A sum of doubles depends on the order in which tasks finish; one of integers does not, and the same landing
    rows must give the same file.
    """
    # Not round, which takes every value through BigDecimal.
    return F.sum(F.rint(value * _NANO).cast("long"))


def seconds(total: Column) -> Column:
    """A sum of nanoseconds as seconds; 0.0 where nothing was added."""
    return F.coalesce(total, F.lit(0)) / F.lit(float(_NANO))

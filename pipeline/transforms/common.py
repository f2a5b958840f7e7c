"""What the transforms share: the minute of a row, duplicates, and sums that do not depend on order."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import PROBE_MESSAGES

STREAM = ("probe", "stream", "queue_type", "vhost", "node")
"""The columns that name a probe's stream."""

_NANO = 1_000_000_000
_MAX_SECONDS = 1e8
"""Seconds, three years: nothing that is measured here lasts longer, and a sum of nanoseconds stays an int64."""


def minute(time: str) -> Column:
    """The start of the minute of a timestamp column."""
    return F.date_trunc("minute", F.col(time)).alias("minute")


MESSAGE = tuple(reversed(PROBE_MESSAGES.key))
"""What tells messages apart, the number first: sorting compares numbers many times faster than text."""


def distinct_rows(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row a key, whatever was delivered twice: a file that was copied must not count again.

    Of rows that share a key and differ, the greatest stays, so that the result does not depend on their order.
    """
    rest = [name for name in rows.columns if name not in key]
    return rows.repartition(*key).groupBy(*key).agg(F.max(F.struct(*rest)).alias("row")).select(*key, "row.*")


def distinct_messages(rows: DataFrame) -> DataFrame:
    """What `distinct_rows` gives for the key of messages, for a third of its price where no row came twice.

    Sequence numbers are dense, so each block of 64 of them is counted, and marked in 64 bits: a block with more
    messages than bits holds duplicates. Only messages of such blocks are sorted. Blocks are told apart by a hash: two
    that share one look as if they held duplicates, which costs time and nothing else; never the other way round.
    """
    others = [name for name in MESSAGE if name != "seq"]
    marked = rows.withColumn("_block", F.xxhash64(*others, F.shiftright("seq", 6)))
    suspect = (
        marked.groupBy("_block")
        .agg(F.count("*").alias("messages"), F.bit_or(F.expr("shiftleft(1L, cast(seq & 63 AS int))")).alias("bits"))
        .where(F.expr("bit_count(bits) < messages"))
        .select("_block")
    )
    # Both joins, and all behind the second one, go from the plan while it runs, where no block is doubtful.
    blocks = F.broadcast(suspect)
    single = marked.join(blocks, "_block", "left_anti").select(*rows.columns)
    in_suspect = marked.join(blocks, "_block", "left_semi").select(*rows.columns)
    # By the time, too: a message has one, and a minute must not depend on the rows of others.
    return single.unionByName(distinct_rows(in_suspect, (*MESSAGE, "intended_at")))


def duration(name: str) -> Column:
    """A column of seconds where it holds a duration, else null: NaN and infinity would poison every sum."""
    value = F.col(name)
    return F.when((value >= 0) & (value <= _MAX_SECONDS), value)


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

"""Shared by the transforms: the minute of a row, deduplication, and sums that do not depend on order."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import PROBE_MESSAGES

# The columns that identify a probe stream.
STREAM = ("probe", "stream", "queue_type", "vhost", "node")

_NANO = 1_000_000_000
# Three years: no measured duration is longer, and a sum of nanoseconds stays an int64.
_MAX_SECONDS = 1e8


def minute(time: str) -> Column:
    """The start of the minute of a timestamp column."""
    return F.date_trunc("minute", F.col(time)).alias("minute")


# The key of a message, the number first: sorting compares numbers many times faster than text.
MESSAGE = tuple(reversed(PROBE_MESSAGES.key))


def distinct_rows(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row per key: a file that was copied must not count twice.

    Of rows with the same key and different values, the greatest stays, so that the result does not depend on their
    order.
    """
    rest = [name for name in rows.columns if name not in key]
    return rows.repartition(*key).groupBy(*key).agg(F.max(F.struct(*rest)).alias("row")).select(*key, "row.*")


def distinct_messages(rows: DataFrame, scope: Sequence[str] = ()) -> DataFrame:
    """Same as `distinct_rows` for the key of messages, at a third of the cost if there are no duplicates.

    Sequence numbers are dense, so each block of 64 of them is counted, and marked in 64 bits: a block with more
    messages than bits has duplicates. Only messages of such blocks are sorted. Blocks are identified by a hash: a
    collision looks like duplicates, which only costs time.
    """
    others = [*scope, *(name for name in MESSAGE if name != "seq")]
    marked = rows.withColumn("_block", F.xxhash64(*others, F.shiftright("seq", 6)))
    suspect = (
        marked.groupBy("_block")
        .agg(F.count("*").alias("messages"), F.bit_or(F.expr("shiftleft(1L, cast(seq & 63 AS int))")).alias("bits"))
        .where(F.expr("bit_count(bits) < messages"))
        .select("_block")
    )
    # If no block is suspect, adaptive execution removes both joins and everything after the second one.
    blocks = F.broadcast(suspect)
    single = marked.join(blocks, "_block", "left_anti").select(*rows.columns)
    in_suspect = marked.join(blocks, "_block", "left_semi").select(*rows.columns)
    # The time is part of the key: each message has one, and a minute must not depend on rows of other minutes.
    return single.unionByName(distinct_rows(in_suspect, (*MESSAGE, *scope, "intended_at")))


def duration(name: str) -> Column:
    """A column of seconds if it is a valid duration, else null: NaN and infinity would spoil every sum."""
    value = F.col(name)
    return F.when((value >= 0) & (value <= _MAX_SECONDS), value)


def nanoseconds(value: Column) -> Column:
    """The sum of a column of seconds, as whole nanoseconds.

    A sum of doubles depends on the order in which tasks finish; a sum of integers does not, and the same landing rows
    must give the same file.
    """
    # Not `round`, which converts every value to BigDecimal.
    return F.sum(F.rint(value * _NANO).cast("long"))


def seconds(total: Column) -> Column:
    """A sum of nanoseconds as seconds; 0.0 for an empty sum."""
    return F.coalesce(total, F.lit(0)) / F.lit(float(_NANO))

"""The worst queues by redelivery, prefetch ceiling or backlog, and the slowest probe streams by confirm latency."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.measures import quantity
from ackscope.tables import CHANNELS_1M, CONSUMERS_1M, HOURS, LATENCY_1M, QUEUES_1M, Table
from pipeline.answers.answer import MAX_ROWS, HistoryAnswer, collected, coverage, expects_acks, hours_known
from pipeline.answers.moments import format_duration
from pipeline.answers.rollup_reader import RollupReader

REDELIVERED, CEILING, CONFIRM, BACKLOG = "redelivered", "ceiling", "confirm", "backlog"

# Ranking criteria, and the table of each.
BY: dict[str, Table] = {
    REDELIVERED: HOURS[QUEUES_1M.name],
    CEILING: HOURS[CHANNELS_1M.name],
    CONFIRM: HOURS[LATENCY_1M.name],
    BACKLOG: HOURS[QUEUES_1M.name],
}

_CONSUMERS = HOURS[CONSUMERS_1M.name]


def redelivered(rows: DataFrame) -> DataFrame:
    """queues_1h -> `vhost`, `queue`, `value` messages redelivered, `beside` messages delivered."""
    return (
        rows.groupBy("vhost", "queue")
        .agg(F.sum("redelivered").alias("value"), F.sum("delivered").alias("beside"))
        .where(F.col("value") > 0)
    )


def backlog(rows: DataFrame) -> DataFrame:
    """queues_1h -> `vhost`, `queue`, `value` average messages ready, `beside` maximum."""
    return (
        rows.groupBy("vhost", "queue")
        .agg(
            F.avg("messages_ready_last").alias("value"),
            F.max("messages_ready_max").cast("double").alias("beside"),
        )
        .where(F.col("value") > 0)
    )


def ceiling(channels: DataFrame, consumers: DataFrame) -> DataFrame:
    """channels_1h and consumers_1h -> `vhost`, `queue`, `value` seconds at the ceiling, `beside` seconds followed.

    The seconds of all channels that consume from a queue are added. A channel that consumes from several queues counts
    for each: its ceiling is shared, and which queue fills it is unknown.
    """
    where = consumers.select("hour", "channel", "vhost", "queue").distinct()
    followed = F.col("minutes") * 60.0
    times = channels.where(F.col("limited") > 0).select(
        "hour",
        "channel",
        followed.alias("followed"),
        (followed * F.col("at_ceiling") / F.greatest("samples", F.lit(1))).alias("at_ceiling"),
    )
    return (
        times.join(where, ["hour", "channel"], "inner")
        .groupBy("vhost", "queue")
        .agg(F.sum("at_ceiling").alias("value"), F.sum("followed").alias("beside"))
        .where(F.col("value") > 0)
    )


def confirms(rows: DataFrame) -> DataFrame:
    """latency_1h -> `probe`, `stream`, `node`, `max` and the buckets of its confirms."""
    mine = (F.col("measure") == "confirm") & (F.col("bounds") == latency.BOUNDS_VERSION)
    return (
        rows.where(mine & expects_acks())
        .groupBy("probe", "stream", "node")
        .agg(F.max("max").alias("max"), *(F.sum(name).alias(name) for name in latency.COLUMNS))
    )


def worst(spark: SparkSession, reader: RollupReader, by: str, start: float, end: float) -> HistoryAnswer:
    """The worst queues, or probe streams, by one of `BY`, from `start` to `end`, seconds since 1970."""
    frame = reader.frame(spark, BY[by], start, end)
    known = collected(hours_known(frame))
    data = coverage(start, end, known)
    options = {"by": by}
    if not known:
        return HistoryAnswer("worst", options, data, because=f"{BY[by].name} has no hours in this time range")
    if by == CONFIRM:
        rows = _tails(collected(confirms(frame)))
    elif by == CEILING:
        rows = _shares(collected(ceiling(frame, reader.frame(spark, _CONSUMERS, start, end))))
    else:
        rows = _shares(collected((redelivered if by == REDELIVERED else backlog)(frame)))
    sentences = [_sentence(by, row) for row in rows[:MAX_ROWS]] or [_NOTHING[by]]
    return HistoryAnswer("worst", options, data, tuple(sentences), tuple(rows[:MAX_ROWS]), more={"all": len(rows)})


_NOTHING = {
    REDELIVERED: "no queue redelivered a message",
    CEILING: "no followed channel reached its prefetch limit",
    CONFIRM: "no probe message was confirmed",
    BACKLOG: "no queue had messages ready at the end of any hour",
}


def _shares(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Largest first, each with its share of the total."""
    total = sum(row["value"] for row in rows)
    ordered = sorted(rows, key=lambda row: (-row["value"], row["vhost"], row["queue"]))
    return [{**row, "share": row["value"] / total} for row in ordered]


def _tails(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sorted by p99; `share` is the stream's share of the slowest 1 % of all messages."""
    merged = [[row[name] for name in latency.COLUMNS] for row in rows]
    every = [sum(counts) for counts in zip(*merged, strict=True)]
    tail = latency.bucket(latency.quantile(every, None, 0.99) or 0.0)
    slow = sum(every[tail:])
    found = []
    for row, counts in zip(rows, merged, strict=True):
        p50, p99 = (latency.quantile(counts, row["max"], q) for q in (0.5, 0.99))
        found.append(
            {
                "stream": f"{row['probe']}/{row['stream']}/{row['node']}",
                "value": p99,
                "beside": p50,
                "max": row["max"],
                "messages": sum(counts),
                "share": sum(counts[tail:]) / slow if slow else 0.0,
            }
        )
    return sorted(found, key=lambda row: (-(row["value"] or 0.0), row["stream"]))


def _sentence(by: str, row: Mapping[str, Any]) -> str:
    share = f"{row['share'] * 100:.3g} %"
    if by == CONFIRM:
        p50, p99, most = (quantity(row[name], "seconds") for name in ("beside", "value", "max"))
        return (
            f"probe {row['stream']!r}: p99 {p99} (median {p50}, longest {most}, {row['messages']:,} messages); "
            f"{share} of the slowest 1 % overall"
        )
    who = f"queue {row['queue']!r} in vhost {row['vhost']!r}"
    if by == BACKLOG:
        most = quantity(row["beside"], "messages")
        return f"{who}: {quantity(row['value'], 'messages')} ready on average, {most} at most; {share} of all"
    if by == CEILING:
        part = row["value"] / row["beside"] * 100 if row["beside"] else 0.0
        return (
            f"{who}: {format_duration(row['value'])} at the prefetch ceiling, summed over its channels; "
            f"{part:.3g} % of the time they were followed, {share} of all"
        )
    delivered = row["beside"]
    part = f", {row['value'] / delivered * 100:.3g} % of its deliveries" if delivered else ""
    return f"{who}: {quantity(row['value'], 'messages')} redelivered{part}; {share} of all"

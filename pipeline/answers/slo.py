"""SLO: the share of probe messages confirmed in time, the error budget that is left, and when it is exhausted.

Lost, undecided and nacked messages count as bad: they stay in the denominator. The histograms have fixed buckets, so a
threshold is counted at the bucket edge below it, and the edge above it gives the upper bound.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.clock import stamp
from ackscope.measures import quantity
from ackscope.tables import HOURS, LATENCY_1M, OUTCOMES_1M
from pipeline.answers.answer import MAX_ROWS, HistoryAnswer, collected, coverage, expects_acks, hours_known
from pipeline.answers.moments import format_duration
from pipeline.answers.rollup_reader import RollupReader

# Burn rates are reported over these windows; the first two from minutes, the last from hours.
WINDOWS = {"1h": 3600.0, "6h": 6 * 3600.0, "3d": 3 * 86400.0}

_STREAM = ("probe", "stream", "node")

# Queue type of streams without a queue: reported, but not counted in the total.
_CONTROL_QUEUE_TYPE = "none"


def edges(threshold: float) -> tuple[int, int]:
    """The number of buckets below a threshold: certainly, and at most.

    They differ by one unless the threshold is an edge; a threshold above the last edge, 60 s, is counted there.
    """
    below = sum(edge <= threshold * (1 + 1e-9) for edge in latency.EDGES)
    exact = below > 0 and abs(latency.EDGES[below - 1] - threshold) <= 1e-9 * threshold
    return below, below if exact else min(below + 1, len(latency.EDGES))


def counted(histograms: DataFrame, outcomes: DataFrame, time: str, threshold: float) -> DataFrame:
    """Messages by time and stream: `messages`, and of them at least `good_low` and at most `good_high` in time.

    `histograms` are rows of latency, `outcomes` of outcomes, of minutes or hours. The confirm histogram includes nacked
    and returned messages, whose latency is not separate, so all of them are subtracted from those in time.
    """
    below, below_at_most = edges(threshold)
    confirms = (
        histograms.where((F.col("measure") == "confirm") & (F.col("bounds") == latency.BOUNDS_VERSION))
        .groupBy(time, *_STREAM)
        .agg(
            F.sum(F.expr(" + ".join(("0L", *latency.COLUMNS[:below])))).alias("under_low"),
            F.sum(F.expr(" + ".join(("0L", *latency.COLUMNS[:below_at_most])))).alias("under_high"),
        )
    )
    sent = (
        outcomes.where(expects_acks())
        .groupBy(time, *_STREAM)
        .agg(
            F.max("queue_type").alias("queue_type"),
            F.sum("messages").alias("messages"),
            F.sum("acked").alias("acked"),
            F.sum(F.col("nacked") + F.col("returned")).alias("refused"),
        )
    )

    def good(name: str) -> Column:
        under = F.coalesce(name, F.lit(0)) - F.col("refused")
        return F.greatest(F.lit(0), F.least(under, F.col("acked")))

    return sent.join(confirms, [time, *_STREAM], "left").select(
        F.col(time).alias("at"),
        *_STREAM,
        "queue_type",
        "messages",
        good("under_low").alias("good_low"),
        good("under_high").alias("good_high"),
    )


def slo(
    spark: SparkSession, reader: RollupReader, start: float, end: float, threshold: float, target: float
) -> HistoryAnswer:
    """Share, budget and burn rate of each probe stream and of all.

    `threshold` is in seconds, `target` the share that should be confirmed within it, 0..1 exclusive; `start` and `end`
    are seconds since 1970.
    """
    below, below_at_most = edges(threshold)
    low, high = (latency.EDGES[it - 1] if it else 0.0 for it in (below, below_at_most))
    options = {"under_seconds": threshold, "counted_at": low, "counted_at_most": high, "target": target}
    histograms, outcomes = (reader.frame(spark, HOURS[table.name], start, end) for table in (LATENCY_1M, OUTCOMES_1M))
    known = collected(hours_known(outcomes))
    data = coverage(start, end, known)
    if not known:
        return HistoryAnswer("slo", options, data, because="no probe messages in this time range")
    of_hours = collected(counted(histograms, outcomes, "hour", threshold))
    histograms, outcomes = (
        reader.minutes(spark, table, end - WINDOWS["6h"], end) for table in (LATENCY_1M, OUTCOMES_1M)
    )
    of_minutes = collected(counted(histograms, outcomes, "minute", threshold))
    streams = sorted({_name(row) for row in of_hours})
    controls = {_name(row) for row in of_hours if row["queue_type"] == _CONTROL_QUEUE_TYPE}
    rows = [
        _row(
            name,
            [row for row in of_hours if _belongs(row, name)],
            [row for row in of_minutes if _belongs(row, name)],
            end,
            target,
        )
        for name in ("", *streams)
        if name or streams != sorted(controls)
    ]
    rows[1:] = sorted(rows[1:], key=lambda row: (row["stream"] in controls, row["good"]))
    sentences = (_describe_threshold(threshold, low, high), *(_sentence(row, target) for row in rows[:MAX_ROWS]))
    return HistoryAnswer("slo", options, data, sentences, tuple(rows[:MAX_ROWS]))


def _name(row: Mapping[str, Any]) -> str:
    return "/".join(row[name] for name in _STREAM)


def _belongs(row: Mapping[str, Any], name: str) -> bool:
    return _name(row) == name if name else row["queue_type"] != _CONTROL_QUEUE_TYPE


def _row(
    name: str, hours: Iterable[Mapping[str, Any]], minutes: Iterable[Mapping[str, Any]], end: float, target: float
) -> dict[str, Any]:
    """Shares, budget and burn rates of one stream; `name` is "" for all."""
    hours, minutes = list(hours), list(minutes)
    messages, good, good_high = _sums(hours)
    allowed = (1 - target) * messages
    left = 1 - (messages - good) / allowed if messages else None
    burn = {
        window: _burn(hours if length > WINDOWS["6h"] else minutes, end - length, target)
        for window, length in WINDOWS.items()
    }
    spent_in = len({row["at"] for row in hours}) * 3600.0
    rate = burn["6h"]
    exhausted = None
    if left is not None and rate is not None and left > 0 and rate > 1:
        exhausted = left * spent_in / rate
    return {
        "stream": name or "all",
        "messages": messages,
        "bad": messages - good,
        "good": good / messages if messages else 1.0,
        "good_at_most": good_high / messages if messages else 1.0,
        "budget_left": left,
        "burn": burn,
        "gone_in_seconds": exhausted,
    }


def _sums(rows: Iterable[Mapping[str, Any]]) -> tuple[int, int, int]:
    rows = list(rows)
    messages, low, high = (sum(row[name] for row in rows) for name in ("messages", "good_low", "good_high"))
    return messages, low, high


def _burn(rows: Iterable[Mapping[str, Any]], start: float, target: float) -> float | None:
    """Bad share over allowed share; 1 spends exactly the budget. None without messages."""
    messages, good, _ = _sums(row for row in rows if stamp(row["at"]) >= start)
    return (messages - good) / messages / (1 - target) if messages else None


def _describe_threshold(threshold: float, low: float, high: float) -> str:
    requested = quantity(threshold, "seconds")
    if low == high:
        return f"confirmed within {requested}: this is a bucket edge, so the count is exact"
    return (
        f"{requested} is inside a bucket: counted at {quantity(low, 'seconds')}, the edge below; "
        f"the upper bound is counted at {quantity(high, 'seconds')}"
    )


def _sentence(row: Mapping[str, Any], target: float) -> str:
    who = "all probe streams" if row["stream"] == "all" else f"probe {row['stream']!r}"
    share = f"{_percent(row['good'])}"
    if row["good_at_most"] != row["good"]:
        share += f" to {_percent(row['good_at_most'])}"
    met = (
        "met"
        if row["good"] >= target
        else "not met"
        if row["good_at_most"] < target
        else "undecided, the threshold is inside a bucket"
    )
    head = f"{who}: {share} in time of {row['messages']:,} messages; {_percent(target)} is {met}"
    left = row["budget_left"]
    budget = "" if left is None else f"; budget left {left * 100:.0f} %" if left > 0 else "; budget spent"
    rates = [f"{rate:.2g} over {window}" for window, rate in row["burn"].items() if rate is not None]
    burn = f"; burn rate {', '.join(rates)}" if rates else "; burn rate unknown, no recent messages"
    exhausted = row["gone_in_seconds"]
    return f"{head}{budget}{burn}" + (
        f"; budget exhausted in {format_duration(exhausted)} at the rate of the last 6 h" if exhausted else ""
    )


def _percent(share: float) -> str:
    """As many nines as there are: 99.9 %, 99.987 %; never rounded up to 100."""
    text = f"{int(share * 1_000_00) / 1000:.3f}".rstrip("0").rstrip(".")
    return f"{text} %"

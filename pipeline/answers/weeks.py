"""This week compared with the week before, using only hours of the week that both have data for."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.clock import stamp
from ackscope.measures import measure, quantity
from ackscope.ranking import display_name
from ackscope.tables import HOURS, LATENCY_1M, NODES_1M, OUTCOMES_1M, QUEUES_1M
from pipeline.answers.answer import DataCoverage, HistoryAnswer, collected, coverage, expects_acks, hours_known
from pipeline.answers.moments import format_duration
from pipeline.answers.rollup_reader import RollupReader

WEEK = 7 * 86400.0

# Queues in the answer: those whose traffic changed most.
MAX_MOVERS = 20

_COUNTERS = ("published", "delivered", "acked", "redelivered")
_QUANTILES = {"confirm_p50": 0.5, "confirm_p99": 0.99}


def queues(rows: DataFrame) -> DataFrame:
    """queues_1h -> one row per hour: the counters of all queues, and their `ready` messages at its end."""
    return rows.groupBy("hour").agg(
        *(F.sum(name).alias(name) for name in _COUNTERS), F.sum("messages_ready_last").alias("ready")
    )


def confirms(rows: DataFrame) -> DataFrame:
    """latency_1h -> one row per hour: the confirm histogram of all probe streams."""
    mine = (F.col("measure") == "confirm") & (F.col("bounds") == latency.BOUNDS_VERSION)
    return (
        rows.where(mine & expects_acks())
        .groupBy("hour")
        .agg(F.max("max").alias("max"), *(F.sum(name).alias(name) for name in latency.COLUMNS))
    )


def outcomes(rows: DataFrame) -> DataFrame:
    """outcomes_1h -> one row per hour: `messages` of the probes, and `failed` ones that were not acked."""
    mine = rows.where(expects_acks())
    return mine.groupBy("hour").agg(
        F.sum("messages").alias("messages"), F.sum(F.col("messages") - F.col("acked")).alias("failed")
    )


def nodes(rows: DataFrame) -> DataFrame:
    """nodes_1h -> one row per hour: memory used and free disk of all nodes, bytes."""
    return rows.groupBy("hour").agg(F.sum("mem_used_max").alias("mem_used"), F.sum("disk_free_min").alias("disk_free"))


def top_movers(rows: DataFrame, hours: Sequence[float], end: float) -> DataFrame:
    """queues_1h -> `vhost`, `queue`, `published` and `published_before`, messages, in the hours that both weeks have.

    `hours` are those of the later week, seconds since 1970; `end` is where that week ends.
    """
    late = F.col("hour") >= F.timestamp_seconds(F.lit(end - WEEK))
    number = F.unix_seconds("hour") + F.when(late, 0).otherwise(round(WEEK))
    return (
        rows.where(number.isin([round(hour) for hour in hours]))
        .groupBy("vhost", "queue")
        .agg(
            F.sum(F.when(late, F.col("published"))).alias("published"),
            F.sum(F.when(~late, F.col("published"))).alias("published_before"),
        )
        .where(F.col("published").isNotNull() & F.col("published_before").isNotNull())
        .orderBy(F.desc(F.abs(F.col("published") - F.col("published_before"))), "vhost", "queue")
        .limit(MAX_MOVERS)
    )


def weeks(spark: SparkSession, reader: RollupReader, end: float) -> HistoryAnswer:
    """Each measure in the week up to `end`, seconds since 1970, and in the week before."""
    end = end // 3600 * 3600
    frames = {
        name: reader.frame(spark, HOURS[name], end - 2 * WEEK, end)
        for name in (QUEUES_1M.name, LATENCY_1M.name, OUTCOMES_1M.name, NODES_1M.name)
    }
    known = {name: collected(hours_known(frame)) for name, frame in frames.items()}
    data = _span(end, known)
    common_hours = {name: common(((stamp(it["hour"]) for it in hours)), end) for name, hours in known.items()}
    if not any(common_hours.values()):
        return HistoryAnswer("weeks", {}, data, because=_because(data))
    of_queues = collected(queues(frames[QUEUES_1M.name]))
    rows = [
        *_rates(of_queues, known[QUEUES_1M.name], common_hours[QUEUES_1M.name]),
        *_means(of_queues, ("ready",), common_hours[QUEUES_1M.name]),
        *_latency(collected(confirms(frames[LATENCY_1M.name])), common_hours[LATENCY_1M.name]),
        *_failed(collected(outcomes(frames[OUTCOMES_1M.name])), common_hours[OUTCOMES_1M.name]),
        *_means(collected(nodes(frames[NODES_1M.name])), ("mem_used", "disk_free"), common_hours[NODES_1M.name]),
    ]
    found = (
        _changed_movers(collected(top_movers(frames[QUEUES_1M.name], common_hours[QUEUES_1M.name], end)))
        if common_hours["queues_1m"]
        else []
    )
    sentences = (_describe_comparison(rows), *(_sentence(row) for row in rows), *(_mover(row) for row in found[:5]))
    return HistoryAnswer("weeks", {}, data, sentences, tuple(rows), more={"queues": found})


def common(hours: Iterable[float], end: float) -> list[float]:
    """The hours of the week up to `end` with data in both weeks."""
    known = set(hours)
    return sorted(hour for hour in known if end - WEEK <= hour < end and hour - WEEK in known)


def _span(end: float, known: Mapping[str, Sequence[Mapping[str, Any]]]) -> DataCoverage:
    """The coverage of the table with the longest history."""
    longest = max(known.values(), key=len)
    return coverage(end - 2 * WEEK, end, longest)


def _because(data: DataCoverage) -> str:
    if data.first is None:
        return "no data for the last two weeks"
    return f"no hour of this week has data a week before; data begins {data.first[:16]}"


def _split(
    rows: Iterable[Mapping[str, Any]], hours: Sequence[float]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The rows of this week and of the week before, for these hours."""
    by_hour = {stamp(row["hour"]): row for row in rows}
    pairs = [(by_hour[at], by_hour[at - WEEK]) for at in hours if at in by_hour and at - WEEK in by_hour]
    return [now for now, _ in pairs], [before for _, before in pairs]


def _rates(
    rows: Iterable[Mapping[str, Any]], known: Iterable[Mapping[str, Any]], hours: Sequence[float]
) -> Iterable[dict[str, Any]]:
    minutes = {it["hour"]: it["minutes"] for it in known}
    for name in _COUNTERS:
        pair = [
            [(row[name], minutes[row["hour"]]) for row in week if row[name] is not None]
            for week in _split((row for row in rows if row[name] is not None), hours)
        ]
        this, before = (
            sum(it for it, _ in week) / (60 * sum(known for _, known in week)) if week else None for week in pair
        )
        yield _row(name, this, before, len(pair[0]))


def _means(rows: Iterable[Mapping[str, Any]], names: Sequence[str], hours: Sequence[float]) -> Iterable[dict[str, Any]]:
    rows = list(rows)
    for name in names:
        weeks_of = _split((row for row in rows if row[name] is not None), hours)
        this, before = (sum(row[name] for row in week) / len(week) if week else None for week in weeks_of)
        yield _row(name, this, before, len(weeks_of[0]))


def _latency(rows: Iterable[Mapping[str, Any]], hours: Sequence[float]) -> Iterable[dict[str, Any]]:
    weeks_of = _split(rows, hours)
    for name, q in _QUANTILES.items():
        this, before = (
            latency.quantile(
                [sum(row[column] for row in week) for column in latency.COLUMNS],
                max((row["max"] for row in week), default=None),
                q,
            )
            for week in weeks_of
        )
        yield _row(name, this, before, len(weeks_of[0]))


def _failed(rows: Iterable[Mapping[str, Any]], hours: Sequence[float]) -> Iterable[dict[str, Any]]:
    weeks_of = _split(rows, hours)
    sums = [(sum(row["failed"] for row in week), sum(row["messages"] for row in week)) for week in weeks_of]
    this, before = (failed / messages if messages else None for failed, messages in sums)
    yield _row("failed", this, before, len(weeks_of[0]))


def _row(name: str, this: float | None, before: float | None, hours: int) -> dict[str, Any]:
    change = this / before - 1 if this is not None and before else None
    return {
        "measure": name,
        "unit": measure(name).unit,
        "this_week": this,
        "week_before": before,
        "change": change,
        "hours": hours,
    }


def _changed_movers(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(row) for row in rows if row["published"] != row["published_before"]]


def _describe_comparison(rows: Iterable[Mapping[str, Any]]) -> str:
    """How many hours of the weeks were compared; measures may differ in this."""
    hours = sorted({row["hours"] for row in rows if row["hours"]})
    shortest, longest = format_duration(hours[0] * 3600), format_duration(hours[-1] * 3600)
    span = shortest if shortest == longest else f"{shortest} to {longest}"
    return f"compared {span} of each week, the hours with data in both"


def _sentence(row: Mapping[str, Any]) -> str:
    what = measure(row["measure"])
    if row["this_week"] is None or row["week_before"] is None:
        return f"{what.words}: no hour with data in both weeks"
    change = "the same" if row["change"] is None and row["this_week"] == row["week_before"] else _change(row["change"])
    this, before = (quantity(row[name], row["unit"]) for name in ("this_week", "week_before"))
    return f"{what.words}: {this}, week before {before} ({change})"


def _change(change: float | None) -> str:
    if change is None:
        return "from nothing"
    if abs(change) >= 1:
        return f"{change + 1:.3g} times"
    return f"{change * 100:+.3g} %"


def _mover(row: Mapping[str, Any]) -> str:
    this, before = (quantity(row[name], "messages") for name in ("published", "published_before"))
    return f"{display_name('queue', row['vhost'], row['queue'])} received {this}, week before {before}"

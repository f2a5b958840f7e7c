"""When disk, memory and backlog reach their limits, by linear extrapolation."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.clock import stamp
from ackscope.measures import quantity
from ackscope.tables import HOURS, NODES_1M, QUEUES_1M
from pipeline.answers.answer import HistoryAnswer, collected, coverage, hours_known
from pipeline.answers.moments import format_duration, format_minute
from pipeline.answers.rollup_reader import RollupReader
from pipeline.answers.trend import DAYS_NEEDED, Forecast, Trend, trend

# Queues that are extrapolated: those whose backlog grew most.
MAX_QUEUES = 10

_QUEUES, _NODES = HOURS[QUEUES_1M.name], HOURS[NODES_1M.name]
_DAY = 86400.0
_ORDER = (
    Forecast.OVER,
    Forecast.REACHES,
    Forecast.FAR,
    Forecast.NO_LIMIT,
    Forecast.AWAY,
    Forecast.NO_TREND,
    Forecast.NOT_YET,
)


def nodes(rows: DataFrame) -> DataFrame:
    """nodes_1h -> `hour`, `node`, memory used and its limit, free disk and its limit, bytes."""
    return rows.select(
        "hour",
        "node",
        F.col("mem_used_max").alias("memory"),
        F.col("mem_limit_last").alias("memory_limit"),
        F.col("disk_free_min").alias("disk"),
        F.col("disk_free_limit_last").alias("disk_limit"),
    )


def totals(rows: DataFrame) -> DataFrame:
    """queues_1h -> `hour`, `ready`: messages ready in all queues at the end of each hour."""
    return rows.groupBy("hour").agg(F.sum("messages_ready_last").alias("ready")).where(F.col("ready").isNotNull())


def growth(rows: DataFrame, end: float) -> DataFrame:
    """queues_1h -> `vhost`, `queue`, `grew`: the median of the last day minus that of the days before."""
    late = F.col("hour") >= F.timestamp_seconds(F.lit(end - _DAY))
    ready = F.col("messages_ready_last")
    return (
        rows.groupBy("vhost", "queue")
        .agg(
            F.percentile(F.when(late, ready), 0.5).alias("late"),
            F.percentile(F.when(~late, ready), 0.5).alias("early"),
        )
        .select("vhost", "queue", (F.col("late") - F.col("early")).alias("grew"))
        .where(F.col("grew") > 0)
    )


def backlogs(rows: DataFrame, chosen: Iterable[Mapping[str, Any]]) -> DataFrame:
    """queues_1h -> `hour`, `vhost`, `queue`, `ready` of the chosen queues."""
    matches = F.lit(False)
    for it in chosen:
        matches |= (F.col("vhost") == it["vhost"]) & (F.col("queue") == it["queue"])
    ready = F.col("messages_ready_last").alias("ready")
    return rows.where(matches & ready.isNotNull()).select("hour", "vhost", "queue", ready)


def capacity(
    spark: SparkSession, reader: RollupReader, start: float, end: float, backlog: int | None = None
) -> HistoryAnswer:
    """When each limit is reached, by the hours from `start` to `end`, seconds since 1970.

    `backlog` is the limit of messages in one queue; with None only the growth is reported.
    """
    options = {"backlog_limit": backlog}
    queues, of_nodes = (reader.frame(spark, table, start, end) for table in (_QUEUES, _NODES))
    known = collected(hours_known(queues)) + collected(hours_known(of_nodes))
    by_hour = {it["hour"]: it for it in known}
    data = coverage(start, end, by_hour.values())
    if not known:
        return HistoryAnswer("capacity", options, data, because="no hours of queues or nodes in this time range")
    rows = [*_of_nodes(collected(nodes(of_nodes))), *_of_queues(queues, end, backlog)]
    rows.sort(key=lambda row: (_ORDER.index(Forecast(row["verdict"])), row["at"] or 0.0))
    return HistoryAnswer("capacity", options, data, tuple(_sentence(row, end) for row in rows), tuple(rows))


def _of_nodes(rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    by_node: dict[str, list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["hour"]):
        by_node.setdefault(row["node"], []).append(row)
    for node, mine in by_node.items():
        for what, rising in (("disk", False), ("memory", True)):
            values = {stamp(row["hour"]): float(row[what]) for row in mine if row[what] is not None}
            if values:
                limit = next((row[f"{what}_limit"] for row in reversed(mine) if row[f"{what}_limit"] is not None), None)
                yield _row(what, "node", "", node, "bytes", trend(values, limit, rising=rising), limit)


def _of_queues(rows: DataFrame, end: float, backlog: int | None) -> Iterable[dict[str, Any]]:
    def series(found: Iterable[Mapping[str, Any]]) -> dict[float, float]:
        return {stamp(row["hour"]): float(row["ready"]) for row in found}

    all_of_them = series(collected(totals(rows)))
    if all_of_them:
        yield _row("backlog", "cluster", "", "", "messages", trend(all_of_them, None), None)
    most = collected(growth(rows, end).orderBy(F.desc("grew"), "vhost", "queue").limit(MAX_QUEUES))
    found = collected(backlogs(rows, most)) if most else []
    for it in most:
        mine = series(row for row in found if (row["vhost"], row["queue"]) == (it["vhost"], it["queue"]))
        reached = trend(mine, backlog)
        if reached.forecast is not Forecast.NO_TREND:
            yield _row("backlog", "queue", it["vhost"], it["queue"], "messages", reached, backlog)


def _row(what: str, kind: str, vhost: str, name: str, unit: str, found: Trend, limit: float | None) -> dict[str, Any]:
    return {
        "what": what,
        "kind": kind,
        "vhost": vhost,
        "name": name,
        "unit": unit,
        "limit": limit,
        "verdict": found.forecast.value,
        "days": found.days,
        "days_needed": DAYS_NEEDED,
        "level": found.level,
        "slope_a_day": found.slope,
        "slope_low": found.low,
        "slope_high": found.high,
        "at": found.at,
        "earliest": found.earliest,
        "latest": found.latest,
    }


def _sentence(row: Mapping[str, Any], now: float) -> str:
    who = {"cluster": "all queues", "node": f"node {row['name']!r}"}.get(
        row["kind"], f"queue {row['name']!r} in vhost {row['vhost']!r}"
    )
    what = {"disk": "free disk", "memory": "memory"}.get(row["what"], "backlog")
    head = f"{what} of {who}: "
    if row["verdict"] == Forecast.NOT_YET:
        return f"{head}not enough history: {row['days']} of {DAYS_NEEDED} days"

    def size(value: float | None) -> str:
        return quantity(value, row["unit"])

    stands = f"{size(row['level'])} now"
    if row["verdict"] in {Forecast.NO_TREND, Forecast.OVER}:
        rest = "no trend" if row["verdict"] == Forecast.NO_TREND else f"already at its limit of {size(row['limit'])}"
        return f"{head}{stands}, {rest}"
    grows = f"{stands}, {_grows(row, size)}"
    if row["verdict"] == Forecast.NO_LIMIT:
        why = ": set one with --backlog N" if row["what"] == "backlog" and row["kind"] == "queue" else ""
        return f"{head}{grows}; no known limit{why}"
    limit = f"its limit of {size(row['limit'])}"
    if row["verdict"] == Forecast.AWAY:
        return f"{head}{grows}: moving away from {limit}"
    if row["verdict"] == Forecast.FAR:
        return f"{head}{grows}; {limit} is too far away to predict from {row['days']} days"
    latest = format_minute(row["latest"]) if row["latest"] else "never"
    return (
        f"{head}{grows}; reaches {limit} in about {format_duration(row['at'] - now)}, "
        f"between {format_minute(row['earliest'])} and {latest} UTC"
    )


def _grows(row: Mapping[str, Any], size: Callable[[float | None], str]) -> str:
    direction = "grows" if row["slope_a_day"] > 0 else "falls"
    low, high = (size(it) for it in sorted((abs(row["slope_low"]), abs(row["slope_high"]))))
    return f"{direction} by {size(abs(row['slope_a_day']))} a day" + (f" ({low} to {high})" if low != high else "")

"""The measures of `changes` and `baselines` as series: from minutes for shifts, from hours for bands.

A family's frame has the columns `at`, `kind`, `vhost`, `name`, `prefix` and one per measure, null if unknown; minutes
or hours without a row are absent. A measure is named by its column, after the prefix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope import latency
from ackscope.tables import (
    CHANNELS_1M,
    CONSUMERS_1M,
    HOURS,
    LATENCY_1M,
    NODES_1M,
    OUTCOMES_1M,
    QUEUES_1M,
    STEPS_1M,
    Table,
)
from pipeline.transforms.quantile import quantile

OBJECT = ("kind", "vhost", "name", "prefix")
_MIN_FOR_MEDIAN = 5
# Below this many messages a minute, the median or the 99th percentile is not used.
_MIN_FOR_P99 = 100

_STREAM = "concat_ws('/', probe, stream, node)"


@dataclass(frozen=True, slots=True)
class MeasureFamily:
    """The measures of one kind of object that come from one table.

    Attributes:
        source: the table of minutes; the table of hours has the same columns.
        measures: each as SQL over a row of either; `minutes` is the number of minutes it covers.
        lowest, highest: for some measures, the extreme within an hour.
        banded: whether its objects live long enough for bands.
        bands_only: measures that are not searched for shifts, because they would repeat those of another measure.
        shape: prepares the rows: one per object and minute, with `vhost`, `name` and `prefix`.
    """

    kind: str
    source: Table
    measures: Mapping[str, str]
    shape: Callable[[DataFrame, str], DataFrame]
    lowest: Mapping[str, str] = field(default_factory=dict)
    highest: Mapping[str, str] = field(default_factory=dict)
    banded: bool = True
    bands_only: frozenset[str] = frozenset()

    @property
    def shifting(self) -> tuple[str, ...]:
        """The measures that are searched for shifts."""
        return tuple(name for name in self.measures if name not in self.bands_only)

    def of_minutes(self, rows: DataFrame) -> DataFrame:
        """The frame of this family from rows of minutes."""
        measures = {name: self.measures[name] for name in self.shifting}
        return self._frame(rows.withColumn("minutes", F.lit(1)), self.source.time, measures)

    def of_hours(self, rows: DataFrame) -> DataFrame:
        """The same from rows of hours; with `<measure>_low` and `_high` where they exist."""
        low = {f"{name}_low": value for name, value in self.lowest.items()}
        high = {f"{name}_high": value for name, value in self.highest.items()}
        return self._frame(rows, HOURS[self.source.name].time, {**self.measures, **low, **high})

    def _frame(self, rows: DataFrame, time: str, measures: Mapping[str, str]) -> DataFrame:
        return self.shape(rows, time).select(
            F.col(time).alias("at"),
            F.lit(self.kind).alias("kind"),
            "vhost",
            "name",
            "prefix",
            *(F.expr(value).cast("double").alias(name) for name, value in measures.items()),
        )


def to_long(frame: DataFrame) -> DataFrame:
    """A family's frame as (at, kind, vhost, name, measure, value), one row per known value."""
    measures = [name for name in frame.columns if name not in ("at", *OBJECT)]
    rows = frame.unpivot(("at", *OBJECT), tuple(measures), "column", "value").where(F.col("value").isNotNull())
    return rows.select("at", "kind", "vhost", "name", F.concat("prefix", "column").alias("measure"), "value")


def _by_name(name: str, vhost: str = "vhost", prefix: str = "''") -> Callable[[DataFrame, str], DataFrame]:
    def shape(rows: DataFrame, _time: str) -> DataFrame:
        return rows.select(
            "*",
            F.expr(f"coalesce({vhost}, '')").alias("_vhost"),
            F.expr(name).alias("name"),
            F.expr(prefix).alias("prefix"),
        ).withColumn("vhost", F.col("_vhost"))

    return shape


def _histograms(rows: DataFrame, time: str) -> DataFrame:
    """Confirm and delivery latency as columns, over all delivery modes of a stream."""
    by = (time, "probe", "stream", "node", "measure")
    rows_out = (
        rows.where(F.col("measure").isin("confirm", "delivery"))
        .groupBy(*by)
        .agg(F.sum("count").alias("count"), F.max("max").alias("max"), *(F.sum(it).alias(it) for it in latency.COLUMNS))
        .select(*by, F.when(F.col("count") >= _MIN_FOR_MEDIAN, quantile(0.5)).alias("p50"), _tail())
    )
    joined = rows_out.groupBy(*by[:-1]).agg(
        *(
            F.max(F.when(F.col("measure") == measure, F.col(name))).alias(f"{measure}_{name}")
            for measure in ("confirm", "delivery")
            for name in ("p50", "p99")
        )
    )
    return _by_name(_STREAM, "''")(joined, time)


def _tail() -> Column:
    return F.when(F.col("count") >= _MIN_FOR_P99, quantile(0.99)).alias("p99")


def _outcomes(rows: DataFrame, time: str) -> DataFrame:
    sums = rows.groupBy(time, "probe", "stream", "node").agg(
        *(F.sum(name).alias(name) for name in ("messages", "acked", "missing"))
    )
    return _by_name(_STREAM, "''")(sums, time)


def _steps(rows: DataFrame, time: str) -> DataFrame:
    by = (time, "probe", "stream", "node", "step")
    sums = rows.groupBy(*by).agg(
        *(F.sum(name).alias(name) for name in ("attempts", "failures", "count", *latency.COLUMNS)),
        F.max("max").alias("max"),
    )
    rows_out = sums.select(*by, "attempts", "failures", F.when(F.col("count") > 0, quantile(0.5)).alias("p50"))
    return _by_name(_STREAM, "''", "concat(step, '_')")(rows_out, time)


def _consumers(rows: DataFrame, time: str) -> DataFrame:
    """One series per tag, whatever channel it is on."""
    tags = rows.groupBy(time, "vhost", "queue", "tag").agg(
        F.max("prefetch_last").alias("prefetch_last"),
        F.sum("inactive").alias("inactive"),
        F.sum("samples").alias("samples"),
    )
    return _by_name("concat(queue, '/', tag)")(tags, time)


def _rates(*names: str) -> dict[str, str]:
    return {name: f"{name} / (60.0 * minutes)" for name in names}


# Every measure of every kind of object.
FAMILIES = (
    MeasureFamily(
        "queue",
        QUEUES_1M,
        {
            "ready": "messages_ready_last",
            "unacked": "messages_unacked_last",
            "consumers": "consumers_last",
            **_rates("published", "delivered", "acked", "redelivered"),
            "busy": "busy / minutes",
        },
        _by_name("queue"),
        lowest={"consumers": "consumers_min"},
        highest={"ready": "messages_ready_max", "unacked": "messages_unacked_max"},
        bands_only=frozenset({"busy"}),
    ),
    MeasureFamily(
        "channel",
        CHANNELS_1M,
        {
            "unacked": "unacked_last",
            "unconfirmed": "unconfirmed_last",
            "prefetch": "prefetch_last",
            **_rates("published", "confirmed", "delivered", "acked", "redelivered"),
            "at_ceiling": "at_ceiling / nullif(limited, 0)",
        },
        _by_name("channel"),
        banded=False,
    ),
    MeasureFamily(
        "consumer",
        CONSUMERS_1M,
        {"prefetch": "prefetch_last", "inactive": "inactive / nullif(samples, 0)"},
        _consumers,
        banded=False,
    ),
    MeasureFamily(
        "probe",
        LATENCY_1M,
        {name: name for name in ("confirm_p50", "confirm_p99", "delivery_p50", "delivery_p99")},
        _histograms,
    ),
    MeasureFamily("probe", OUTCOMES_1M, {"failed": "(messages - acked + missing) / messages"}, _outcomes),
    MeasureFamily("probe", STEPS_1M, {"p50": "p50", "failed": "failures / attempts"}, _steps),
    MeasureFamily(
        "node",
        NODES_1M,
        {
            "mem_used": "mem_used_last",
            "disk_free": "disk_free_last",
            "fd_used": "fd_used_max",
            "sockets_used": "sockets_used_max",
            "proc_used": "proc_used_max",
            "down": "down / nullif(samples, 0)",
            "mem_alarm": "mem_alarms / nullif(samples, 0)",
            "disk_alarm": "disk_alarms / nullif(samples, 0)",
        },
        _by_name("node", "''"),
        lowest={"disk_free": "disk_free_min"},
        highest={"mem_used": "mem_used_max"},
    ),
)

"""Find the queue that a channel or consumer consumes from, so that its change is listed with the queue."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import CHANGES, CONSUMERS_1M

_QUEUE = "queue"

# (time span, kind, vhost, name).
PartKey = tuple[int, str, str, str]


def attach_queue(rows: pa.Table, consumers: DataFrame, span_seconds: int) -> pa.Table:
    """Return shifts with the queue of their channel or consumer filled in.

    Args:
        rows: with the columns of `CHANGES`.
        consumers: rows of `consumers_1m` of the same time range.
        span_seconds: length of the time spans by which shifts and consumers are joined. Fixed spans make the result
            independent of how many blocks are searched together.
    """
    times = [at // (span_seconds * 1_000_000) for at in rows[CHANGES.time].cast(pa.int64()).to_pylist()]
    parts = list(zip(times, *(rows[name].to_pylist() for name in ("kind", "vhost", "name")), strict=True))
    channels, tags = ({name for _, it, _, name in parts if it == kind} for kind in ("channel", "consumer"))
    if not channels | tags:
        return rows
    named = consumers.select(
        F.floor(F.unix_seconds(CONSUMERS_1M.time) / span_seconds).alias("time"),
        "vhost",
        _QUEUE,
        "channel",
        F.concat_ws("/", _QUEUE, "tag").alias("consumer"),
    )
    consumed = named.where(F.col("channel").isin(channels) | F.col("consumer").isin(tags)).distinct()
    queues = only_queues(consumed.toArrow().to_pylist())
    place = rows.schema.get_field_index(_QUEUE)
    return rows.set_column(place, rows.schema.field(place), pa.array([queues.get(it) for it in parts], pa.string()))


def only_queues(consumers: Iterable[Mapping[str, Any]]) -> dict[PartKey, str]:
    """The queue of each channel and consumer that has exactly one queue in a time span.

    `consumers` are rows of `time`, `vhost`, `queue`, `channel` and `consumer`.
    """
    queues: dict[PartKey, set[str]] = defaultdict(set)
    for row in consumers:
        for kind in ("channel", "consumer"):
            queues[row["time"], kind, row["vhost"], row[kind]].add(row[_QUEUE])
    return {part: next(iter(found)) for part, found in queues.items() if len(found) == 1}

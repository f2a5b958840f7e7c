"""queue_samples, poll_samples -> queues_1m."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUE_SAMPLES, QUEUES_1M
from pipeline.transforms.holding import Holding, held, last

COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Counter of a sample -> its increase of a minute."""

_QUEUES = Holding(
    QUEUE_SAMPLES,
    "queues",
    levels=("queue_type", "messages_ready", "messages_unacked", "consumers"),
    counters=COUNTERS,
    births=True,
)


def queues_1m(samples: DataFrame, polls: DataFrame, wanted: DataFrame | None = None) -> DataFrame:
    """One row a minute and queue."""
    levels = {
        "queue_type": "max(queue_type)",
        "messages_ready_max": f"max({held('messages_ready')})",
        "messages_ready_last": last("messages_ready"),
        "messages_unacked_max": f"max({held('messages_unacked')})",
        "messages_unacked_last": last("messages_unacked"),
        "consumers_min": f"min({held('consumers')})",
        "consumers_last": last("consumers"),
    }
    # As numbers in their order they are gathered in a hash table; text would have all rows sorted.
    kinds = _kinds(samples)
    coded = samples.withColumn("queue_type", F.expr(f"array_position({kinds}, queue_type)"))
    rows = _QUEUES.minutes(coded, polls, levels, wanted)
    told = {"queue_type": f"get({kinds}, cast(queue_type AS int) - 1)", "busy": "cast(published > 0 AS bigint)"}
    return rows.selectExpr(*(f"{told.get(name, name)} AS {name}" for name in QUEUES_1M.names))


def _kinds(samples: DataFrame) -> str:
    """The types of queues, in order: an array in SQL, which is the same for a long time."""
    kinds = samples.select("queue_type").distinct().toArrow()["queue_type"].drop_null().to_pylist()
    # In hexadecimal, for a name is what somebody chose.
    told = (f"decode(X'{kind.encode().hex()}', 'UTF-8')" for kind in sorted(kinds))
    return f"cast(array({', '.join(told)}) AS array<string>)"

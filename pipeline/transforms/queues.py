"""queue_samples, poll_samples -> queues_1m."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark text uses

from ackscope.tables import QUEUE_SAMPLES, QUEUES_1M
from pipeline.transforms.counter_rates import SampleHold, at_last_poll, at_poll

# Counter of a sample -> its increase per minute.
COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}

_QUEUES = SampleHold(
    QUEUE_SAMPLES,
    "queues",
    levels=("queue_type", "messages_ready", "messages_unacked", "consumers"),
    counters=COUNTERS,
    starts_at_zero=True,
)


def queues_1m(
    samples: DataFrame,
    polls: pa.Table,
    types: Sequence[str],
    bounds: DataFrame | None = None,
    scope: Sequence[str] = (),
) -> DataFrame:
    """One row per minute and queue; `types` are all queue types of the samples, sorted."""
    levels = {
        "queue_type": "max(queue_type)",
        "messages_ready_max": f"max({at_poll('messages_ready')})",
        "messages_ready_last": at_last_poll("messages_ready"),
        "messages_unacked_max": f"max({at_poll('messages_unacked')})",
        "messages_unacked_last": at_last_poll("messages_unacked"),
        "consumers_min": f"min({at_poll('consumers')})",
        "consumers_last": at_last_poll("consumers"),
    }
    # Encoded as numbers they are aggregated in a hash table; text would make Spark sort all rows.
    known = _array(types)
    coded = samples.withColumn("queue_type", F.expr(f"array_position({known}, queue_type)"))
    rows = _QUEUES.minutes(coded, polls, levels, bounds, scope)
    expressions = {"queue_type": f"get({known}, cast(queue_type AS int) - 1)", "busy": "cast(published > 0 AS bigint)"}
    return rows.selectExpr(*scope, *(f"{expressions.get(name, name)} AS {name}" for name in QUEUES_1M.names))


def _array(types: Sequence[str]) -> str:
    """Queue types as an SQL array; they rarely change, so generated code is reused."""
    # In hexadecimal, because names are user input.
    expressions = (f"decode(X'{kind.encode().hex()}', 'UTF-8')" for kind in types)
    return f"cast(array({', '.join(expressions)}) AS array<string>)"

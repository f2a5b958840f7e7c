"""consumer_samples, poll_samples -> consumers_1m."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from ackscope.tables import CONSUMER_SAMPLES, CONSUMERS_1M
from pipeline.transforms.counter_rates import SampleHold, at_last_poll, count_polls

_OWNER = ("connection", "user", "node")

_CONSUMERS = SampleHold(CONSUMER_SAMPLES, "consumers", levels=(*_OWNER, "prefetch_count", "ack_required", "active"))


def consumers_1m(
    samples: DataFrame, polls: pa.Table, bounds: DataFrame | None = None, scope: Sequence[str] = ()
) -> DataFrame:
    """One row per minute and consumer; unknown flags count neither as inactive nor as automatic."""
    levels = {
        **{name: f"max({name})" for name in _OWNER},
        "inactive": count_polls("NOT active"),
        "automatic": count_polls("NOT ack_required"),
        "prefetch_last": at_last_poll("prefetch_count"),
    }
    return _CONSUMERS.minutes(samples, polls, levels, bounds, scope).selectExpr(*scope, *CONSUMERS_1M.names)

"""channel_samples, poll_samples -> channels_1m."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from ackscope.tables import CHANNEL_SAMPLES, CHANNELS_1M
from pipeline.transforms.counter_rates import SampleHold, at_last_poll, at_poll, count_polls

_OWNER = ("connection", "vhost", "user", "node")

_CHANNELS = SampleHold(
    CHANNEL_SAMPLES,
    "channels",
    levels=(*_OWNER, "prefetch_count", "consumers", "messages_unacked", "messages_unconfirmed"),
    counters={
        "publish": "published",
        "confirm": "confirmed",
        "deliver": "delivered",
        "ack": "acked",
        "redeliver": "redelivered",
    },
)


def channels_1m(
    samples: DataFrame, polls: pa.Table, bounds: DataFrame | None = None, scope: Sequence[str] = ()
) -> DataFrame:
    """One row per minute and channel.

    The prefetch is per consumer (`basic.qos` with global=false), so a channel may have `prefetch * consumers`
    unacknowledged messages; one consumer is assumed if their number is unknown.
    """
    limited, allowed = "prefetch_count > 0 AND coalesce(consumers, 1) > 0", "prefetch_count * coalesce(consumers, 1)"
    levels = {
        **{name: f"max({name})" for name in _OWNER},
        "limited": count_polls(limited),
        "at_ceiling": count_polls(f"{limited} AND messages_unacked >= {allowed}"),
        "prefetch_last": at_last_poll("prefetch_count"),
        "unacked_max": f"max({at_poll('messages_unacked')})",
        "unacked_last": at_last_poll("messages_unacked"),
        "unconfirmed_max": f"max({at_poll('messages_unconfirmed')})",
        "unconfirmed_last": at_last_poll("messages_unconfirmed"),
    }
    return _CHANNELS.minutes(samples, polls, levels, bounds, scope).selectExpr(*scope, *CHANNELS_1M.names)

"""What `queue_samples` mean, in the words that the rollups of queues by DuckDB, Polars and pandas share.

A sample holds at every poll until the next one, and what a counter grew by is spread over the time since it was known
last (`QUEUE_SAMPLES`). All times are microseconds since 1970. Polls are numbered, so that how many lie between two
moments is a difference.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackscope.tables import HEARTBEAT
from pipeline.hours import REACH

FAMILY = "queues"
OWN = ["vhost", "queue"]
KEY = [*OWN, "at"]
LEVELS = {"messages_ready": "max", "messages_unacked": "max", "consumers": "min"}
"""Level of a sample -> which one of a minute is told beside the last."""

COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Counter of a sample -> its increase of a minute."""

MINUTE, HOLDS, NEAR = 60_000_000, round(HEARTBEAT * 1_000_000), REACH * 1_000_000

RollupWindow = dict[str, Any]
"""{"start", "end"} in seconds, and the files with rows that it depends on, by table."""

Rollup = Callable[[RollupWindow, Path], None]
"""Makes one Parquet file of a window."""


def bounds(window: RollupWindow) -> tuple[int, int]:
    """From when to when."""
    return window["start"] * 1_000_000, window["end"] * 1_000_000

"""The meaning of `queue_samples`, shared by the rollups of queues with DuckDB, Polars and pandas.

A sample holds at every poll until the next one, and the increase of a counter is spread over the time since its last
reading (`QUEUE_SAMPLES`). All times are microseconds since 1970. Polls are numbered, so that the number of polls
between two times is a difference.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ackscope.tables import HEARTBEAT
from pipeline.hours import REACH

FAMILY = "queues"
OWN = ["vhost", "queue"]
KEY = [*OWN, "at"]
# Level of a sample -> aggregate per minute, in addition to the last value.
LEVELS = {"messages_ready": "max", "messages_unacked": "max", "consumers": "min"}

# Counter of a sample -> its increase per minute.
COUNTERS = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}

MINUTE, HOLDS, NEAR = 60_000_000, round(HEARTBEAT * 1_000_000), REACH * 1_000_000

# {"start", "end"} in seconds, and the files with rows that it depends on, by table.
RollupWindow = dict[str, Any]

# Writes one Parquet file for a window.
Rollup = Callable[[RollupWindow, Path], None]


def bounds(window: RollupWindow) -> tuple[int, int]:
    """Return start and end in microseconds."""
    return window["start"] * 1_000_000, window["end"] * 1_000_000

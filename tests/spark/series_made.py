"""Small made-up series, and rollups that hold them."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from ackscope.tables import QUEUES_1M
from ackscope.tables.arrow import arrow_schema
from pipeline.storage.rollups import Rollups

START = datetime(2026, 1, 5, tzinfo=UTC)
"""A Monday."""

FIRST = int(START.timestamp()) // 3600
CLUSTER = "shop"


def counts(minutes: int, rate: float = 120.0, seed: int = 1) -> np.ndarray:
    """Poisson counts of so many minutes."""
    return np.random.default_rng(seed).poisson(rate, minutes).astype(float)


def queue(name: str, acked: np.ndarray, ready: np.ndarray | None = None) -> list[dict]:
    """Rows of `queues_1m`; a minute that is NaN has no row."""
    waiting = np.zeros(len(acked)) if ready is None else ready
    return [
        dict.fromkeys(QUEUES_1M.names)
        | {
            "minute": START + timedelta(minutes=number),
            "vhost": "/",
            "queue": name,
            "samples": 2,
            "messages_ready_max": int(waiting[number]),
            "messages_ready_last": int(waiting[number]),
            "consumers_min": 1,
            "consumers_last": 1,
            "published": int(value),
            "delivered": int(value),
            "acked": int(value),
            "redelivered": 0,
        }
        for number, value in enumerate(acked)
        if not np.isnan(value)
    ]


def put(rollups: Rollups, rows: list[dict], first: int = 0, end: int | None = None) -> None:
    """Commit the minutes of these hours since `START`; of all without an end."""
    table = pa.Table.from_pylist(rows, schema=arrow_schema(QUEUES_1M))
    hours = {int(row["minute"].timestamp()) // 3600 for row in rows}
    needed = {hour for hour in hours if first <= hour - FIRST and (end is None or hour - FIRST < end)}
    with rollups.writer_lock():
        transaction = rollups.transaction(CLUSTER)
        transaction.replace_hours(QUEUES_1M, needed, table)
        transaction.commit()

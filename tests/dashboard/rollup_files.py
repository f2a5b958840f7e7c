"""Synthetic rollup files in the pipeline's format and schema."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.clock import SystemClock
from ackscope.latency import BOUNDS_VERSION, COLUMNS, bucket
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import BURSTS_1M, LATENCY_1M, OUTCOMES_1M, QUEUES_1M, Table
from ackscope.tables.arrow import arrow_schema

Row = dict[str, Any]
STREAM = {"probe": "confirm", "stream": "classic", "queue_type": "classic", "vhost": "/", "node": "rabbit@shop-1"}


def this_minute() -> datetime:
    """The start of the current minute."""
    return datetime.fromtimestamp(SystemClock().now().wall, UTC).replace(second=0, microsecond=0)


def latency_row(minute: datetime, seconds: list[float], **changes: Any) -> Row:
    """One minute of confirm latency with these durations."""
    counts = dict.fromkeys(COLUMNS, 0)
    for value in seconds:
        counts[COLUMNS[bucket(value)]] += 1
    row = {
        "minute": minute,
        **STREAM,
        "delivery_mode": 2,
        "measure": "confirm",
        "bounds": BOUNDS_VERSION,
        "count": len(seconds),
        "sum": sum(seconds),
        "max": max(seconds),
        **counts,
    }
    return row | changes


def outcome_row(minute: datetime, **changes: Any) -> Row:
    """One minute of 1200 messages, all acked unless changed."""
    names = ("nacked", "returned", "undecided", "lost", "redelivered", "duplicates", "out_of_order", "missing")
    row = {"minute": minute, **STREAM, "delivery_mode": 2, "messages": 1200, "acked": 1200, **dict.fromkeys(names, 0)}
    return row | changes


def burst_row(minute: datetime, **changes: Any) -> Row:
    """One minute of ack bursts of three messages."""
    row = {"minute": minute, **STREAM, "bursts": 400, "frames": 420, "multiple_frames": 300, "messages": 1200}
    return row | {"messages_max": 14, "interval_sum": 59.0, "interval_count": 400, "interval_max": 0.4} | changes


def queue_row(minute: datetime, queue: str, ready: int | None, **changes: Any) -> Row:
    """One minute of one queue."""
    row = {"minute": minute, "vhost": "/", "queue": queue, "queue_type": "classic", "samples": 12}
    row |= {"messages_ready_max": ready, "messages_ready_last": ready}
    row |= {"messages_unacked_max": 10, "messages_unacked_last": 8, "consumers_min": 2, "consumers_last": 2}
    return row | {"published": 600, "delivered": 600, "acked": 600, "redelivered": 0} | changes


def write(root: Path, table: Table, rows: list[Row], cluster: str = "shop") -> None:
    """Write rows like the pipeline: one uniquely named file per hour, listed in one new manifest."""
    hours: dict[int, list[Row]] = {}
    for row in rows:
        hours.setdefault(int(row[table.time].timestamp() // 3600), []).append(row)
    before = manifest.read(root, cluster)
    files = {it.start: it for it in before.tables.get(table.name, ())}
    for hour, mine in hours.items():
        path = Path(table.name) / f"cluster={quote(cluster, safe='')}" / f"date={mine[0][table.time]:%Y-%m-%d}"
        (root / path).mkdir(parents=True, exist_ok=True)
        path /= f"hour={mine[0][table.time]:%H}.{uuid4().hex[:16]}.parquet"
        pq.write_table(pa.Table.from_pylist(mine, schema=arrow_schema(table)), root / path)
        files[hour] = DataFile(str(path), hour, hour + 1, len(mine), {str(hour): path.name})
    tables = {**before.tables, table.name: tuple(files[hour] for hour in sorted(files))}
    place = manifest.manifest_path(root, cluster)
    place.parent.mkdir(exist_ok=True)
    hidden = place.with_name(f".{place.name}.tmp")
    hidden.write_bytes(manifest.encode(Manifest(cluster, before.number + 1, tables=tables)))
    hidden.rename(place)


def write_story(root: Path, minutes: int = 180, cluster: str = "shop", seed: int = 7) -> None:
    """A few hours of traffic with a fault in the last 30 minutes, and a gap of 10 minutes."""
    chance = random.Random(seed)
    end = this_minute()
    story: dict[str, list[Row]] = {table.name: [] for table in (LATENCY_1M, OUTCOMES_1M, BURSTS_1M, QUEUES_1M)}
    for back in range(minutes, 0, -1):
        if 42 <= back < 52:
            continue
        minute = end - timedelta(minutes=back)
        for name, rows in _minute(minute, back, chance):
            story[name].extend(rows)
    for table in (LATENCY_1M, OUTCOMES_1M, BURSTS_1M, QUEUES_1M):
        write(root, table, story[table.name], cluster)


def _minute(minute: datetime, back: int, chance: random.Random) -> Iterator[tuple[str, list[Row]]]:
    bad = back < 30
    for kind, middle in (("classic", 0.0009), ("quorum", 0.0035), ("stream", 0.0021)):
        slow = middle * (4 if bad and kind == "quorum" else 1)
        values = [chance.lognormvariate(0, 0.5) * slow for _ in range(300)]
        yield (
            "latency_1m",
            [
                latency_row(minute, values[:150], stream=kind, queue_type=kind),
                latency_row(minute, values[150:], stream=kind, queue_type=kind, node="rabbit@shop-2"),
            ],
        )
        lost = chance.randrange(6) if bad and kind == "quorum" else 0
        nacked = chance.randrange(9) if bad and kind == "quorum" else 0
        yield (
            "outcomes_1m",
            [outcome_row(minute, stream=kind, queue_type=kind, acked=1200 - lost - nacked, nacked=nacked, lost=lost)],
        )
        yield (
            "bursts_1m",
            [
                burst_row(
                    minute,
                    stream=kind,
                    queue_type=kind,
                    bursts=chance.randrange(200, 500),
                    messages_max=chance.randrange(5, 40),
                )
            ],
        )
    backlog = (30 - back) * 414 if bad else chance.randrange(5)
    yield (
        "queues_1m",
        [
            queue_row(minute, "orders.invoices", backlog, messages_unacked_max=200 if bad else chance.randrange(40)),
            queue_row(minute, "emails.outbound", min(10_000, 7000 + (180 - back) * 20), vhost="marketing"),
            queue_row(minute, "clicks", chance.randrange(900), redelivered=chance.randrange(60) if bad else 0),
        ],
    )

"""Rollups of hours as the pipeline would leave them, with rows that a test makes up."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from ackscope.latency import BOUNDS_VERSION, COLUMNS, bucket
from ackscope.tables import Kind, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.storage.rollups import Rollups

NOW = int(datetime(2026, 3, 16, tzinfo=UTC).timestamp())
"""Seconds since 1970; a Monday, midnight."""

HOUR = 3600
DAY = 24 * HOUR


def at(hours: float) -> datetime:
    """A moment so many hours before `NOW`."""
    return datetime.fromtimestamp(NOW - hours * HOUR, UTC)


def put(root: Path, table: Table, rows: list[dict], cluster: str = "shop") -> None:
    """These rows are now all of a table."""
    rollups = Rollups(root)
    with rollups.writer_lock():
        transaction = rollups.transaction(cluster)
        transaction.replace_table(table, pa.Table.from_pylist(rows, schema=arrow_schema(table)))
        transaction.commit()


def row(table: Table, **values) -> dict:
    """A row of zeros with the given values; an hour is complete unless `minutes` says otherwise."""
    empty = {Kind.STRING: "", Kind.INT: 0, Kind.FLOAT: 0.0, Kind.BOOL: False, Kind.TIME: None}
    made = {it.name: None if it.nullable else empty[it.kind] for it in table.columns}
    if "bounds" in made:
        made["bounds"] = BOUNDS_VERSION
    if table.time == "hour":
        made |= {
            "minutes": 60,
            "first_minute": values["hour"],
            "last_minute": datetime.fromtimestamp(values["hour"].timestamp() + 59 * 60, UTC),
        }
    return made | values


def buckets(durations: Iterable[float]) -> dict:
    """Count, sum, maximum and buckets of these durations, seconds."""
    values = list(durations)
    counts = dict.fromkeys(COLUMNS, 0)
    for value in values:
        counts[COLUMNS[bucket(value)]] += 1
    return {"count": len(values), "sum": sum(values), "max": max(values), **counts}

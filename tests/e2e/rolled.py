"""The rollups of some minutes of real landing files, by the plain Python that Spark is held against: without Java."""

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ackscope import manifest
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import (
    ACK_BURSTS,
    BURSTS_1M,
    CHANGES,
    EPISODES,
    FINDING_EVENTS,
    HOURS,
    LATENCY_1M,
    OUTCOMES_1M,
    POLL_SAMPLES,
    POLLS_1M,
    PROBE_MESSAGES,
    QUEUE_SAMPLES,
    QUEUES_1M,
    Table,
)
from ackscope.tables.arrow import arrow_schema
from tests.spark import golden, golden_episodes, golden_samples
from tests.spark.golden_merging import merged

Rows = list[dict[str, Any]]
_HOUR = 3600


def roll_up(landing: Path, rollups: Path, cluster: str) -> None:
    """The tables that the pages read, as `ackscope pipeline run` would leave them now; minutes show no shift."""
    messages, bursts, samples, polls, events = (
        _landed(landing, table) for table in (PROBE_MESSAGES, ACK_BURSTS, QUEUE_SAMPLES, POLL_SAMPLES, FINDING_EVENTS)
    )
    looks = golden_samples.polls_1m(polls)
    _shelve(
        rollups,
        cluster,
        {
            LATENCY_1M: golden.latency_1m(messages),
            OUTCOMES_1M: golden.outcomes_1m(messages),
            BURSTS_1M: golden.bursts_1m(bursts),
            QUEUES_1M: golden_samples.queues_1m(samples, polls),
            POLLS_1M: looks,
            HOURS[POLLS_1M.name]: merged(looks, POLLS_1M, HOURS[POLLS_1M.name]),
            EPISODES: golden_episodes.episodes(events, looks),
            CHANGES: [],
        },
    )


def _landed(landing: Path, table: Table) -> Rows:
    """The rows of every file that is there."""
    paths = [str(path) for path in (landing / table.name).rglob("*.parquet") if not path.name.startswith((".", "_"))]
    if not paths:
        return []
    found = ds.dataset(paths, schema=arrow_schema(table)).to_table()
    rows: Rows = found.select(list(table.names)).to_pylist()
    return rows


def _shelve(root: Path, cluster: str, tables: dict[Table, Rows]) -> None:
    """A file a table, all of them named by one new manifest."""
    files = {}
    for table, rows in tables.items():
        path = Path(table.name) / f"cluster={cluster}" / f"{uuid4().hex}.parquet"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=arrow_schema(table)), root / path)
        hours = [_hour(row[table.time]) for row in rows] or [0]
        files[table.name] = (DataFile(str(path), min(hours), max(hours) + 1, len(rows)),)
    place = manifest.manifest_path(root, cluster)
    place.parent.mkdir(parents=True, exist_ok=True)
    hidden = place.with_name(f".{place.name}.tmp")
    hidden.write_bytes(manifest.encode(Manifest(cluster, manifest.read(root, cluster).number + 1, tables=files)))
    hidden.rename(place)


def _hour(moment: datetime) -> int:
    return int(moment.timestamp() // _HOUR)

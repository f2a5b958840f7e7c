"""A week of landing files, one every ten seconds, and of hour files of rollups, with known sums."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import PROBE_MESSAGES, QUEUE_SAMPLES, QUEUES_1M, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import first_hour
from pipeline.storage.landing import Partition
from pipeline.storage.rollups import Rollups

CLUSTER = "shop"
FIRST = date(2026, 3, 2)
TABLES = (PROBE_MESSAGES, QUEUE_SAMPLES)
# Per file: 20 messages per second, and the changes of some queues.
_ROWS = {PROBE_MESSAGES: 200, QUEUE_SAMPLES: 50}

_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Week:
    """Landing files of some days from `FIRST` on, one file per table every `every` seconds."""

    root: Path
    days: int
    every: int

    @property
    def dates(self) -> tuple[date, ...]:
        """Dates of all days."""
        return tuple(FIRST + timedelta(days=number) for number in range(self.days))

    @property
    def files(self) -> int:
        """Number of files per table and day."""
        return 86_400 // self.every

    def partitions(self) -> Iterator[Partition]:
        """Yield the folders."""
        for table in TABLES:
            for day in self.dates:
                yield Partition(table, CLUSTER, day)

    def rows(self, partition: Partition) -> int:
        """Return the number of rows in a folder; the `checked` column has each number from 0 to this minus 1 once."""
        return self.files * _ROWS[partition.table]

    def write(self, partition: Partition) -> None:
        """Write the files of a folder."""
        folder = self.root / partition.folder
        folder.mkdir(parents=True)
        size, midnight = _ROWS[partition.table], first_hour(partition.day) * 3600
        template = _rows(partition.table, size)
        for number in range(self.files):
            start = midnight + number * self.every
            within = np.arange(size, dtype=np.int64) * (self.every * _US // size)
            rows = _with(template, partition.table.time, pa.array(start * _US + within, pa.timestamp("us", tz="UTC")))
            rows = _with(rows, checked(partition.table), pa.array(number * size + np.arange(size, dtype=np.int64)))
            moment = datetime.fromtimestamp(start + self.every, UTC).strftime("%Y%m%dT%H%M%S")
            path = folder / f"{moment}-0123abcd-{number:06d}.parquet"
            pq.write_table(rows, path, compression="zstd")
            os.utime(path, (start + self.every,) * 2)


def checked(table: Table) -> str:
    """Return the column that shows missing or duplicate rows."""
    return "seq" if table is PROBE_MESSAGES else "publish"


def roll_up(root: Path, days: int, queues: int) -> None:
    """Write the minute rows of some queues, one commit per hour like `stream`."""
    rollups, dice = Rollups(root), np.random.default_rng(1)
    names = pa.array([f"queue-{number:04d}" for number in range(queues)])
    start = first_hour(FIRST)
    for hour in range(start, start + days * 24):
        count = 60 * queues
        minutes = (hour * 3600 + np.repeat(np.arange(60, dtype=np.int64), queues) * 60) * _US
        columns = {
            name: pa.array(dice.poisson(100, count), pa.int64())
            for name in QUEUES_1M.names
            if str(arrow_schema(QUEUES_1M).field(name).type) == "int64"
        }
        columns["minute"] = pa.array(minutes, pa.timestamp("us", tz="UTC"))
        columns["queue"] = pa.chunked_array([names] * 60).combine_chunks()
        columns |= {name: pa.array(["x"] * count) for name in QUEUES_1M.names if name not in columns}
        with rollups.writer_lock():
            transaction = rollups.transaction(CLUSTER)
            transaction.replace_hours(QUEUES_1M, [hour], pa.table(columns).select(QUEUES_1M.names))
            transaction.commit()


def _rows(table: Table, size: int) -> pa.Table:
    schema = arrow_schema(table)
    made = {
        pa.string(): lambda: pa.array(["quorum"] * size),
        pa.int64(): lambda: pa.array(np.arange(size, dtype=np.int64) % 7),
        pa.float64(): lambda: pa.array(np.random.default_rng(size).lognormal(-6, 1, size)),
        pa.bool_(): lambda: pa.array([False] * size),
    }
    return pa.table(
        {field.name: made[field.type]() if field.type in made else pa.nulls(size, field.type) for field in schema}
    )


def _with(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, values)

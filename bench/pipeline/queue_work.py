"""A landing folder of queues as work for all engines, and the sums that must be equal."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.object_path import Place
from ackscope.tables import POLL_SAMPLES, QUEUE_SAMPLES, QUEUES_1M, Kind, Table
from pipeline.hours import HOUR, REACH
from pipeline.storage.file_stats import FileStats
from pipeline.storage.landing import Landing

_SUMMED = [column.name for column in QUEUES_1M.columns if column.kind == Kind.INT]


def windows(landing: Path) -> list[dict[str, Any]]:
    """Return every hour with samples: start, end, and by table the files with rows that it depends on."""
    stats = {table: _stats(landing, table) for table in (QUEUE_SAMPLES, POLL_SAMPLES)}
    hours = set[int]().union(*(it.hours for it in stats[QUEUE_SAMPLES].values()))
    return [_window(hour * HOUR, stats) for hour in sorted(hours)]


def _window(start: int, stats: dict[Table, dict[Place, FileStats]]) -> dict[str, Any]:
    first, last = (start - REACH) * 1_000_000, (start + HOUR + REACH) * 1_000_000
    files = {
        table.name: [str(path) for path, it in mine.items() if it.first < last and first <= it.last]
        for table, mine in stats.items()
    }
    return {"start": start, "end": start + HOUR, **files}


def _stats(root: Path, table: Table) -> dict[Place, FileStats]:
    landing = Landing(root)
    folders = [partition for partition in landing.partitions() if partition.table == table]
    return {path: it for folder in folders for path, it in landing.files(folder).items()}


def sums(files: Iterable[str]) -> tuple[int, ...]:
    """Return the number of rows in these files of `QUEUES_1M`, and the sums of their columns."""
    total = [0] * (1 + len(_SUMMED))
    for path in files:
        rows = pq.read_table(path, columns=_SUMMED, partitioning=None)
        total[0] += rows.num_rows
        for index, name in enumerate(_SUMMED, 1):
            total[index] += int(pc.sum(rows[name]).as_py() or 0)
    return tuple(total)

"""Simulated history as landing files."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import PROBE_MESSAGES
from bench.pipeline import probing
from bench.pipeline.cluster import shape
from bench.pipeline.fleet import START, Fleet
from bench.pipeline.simulation import Simulation

# Messages per second.
RATE = 2000

_FILE_MINUTES = 15
_USUAL_RATE = sum(stream.rate for stream in probing.STREAMS)


def write_messages(root: Path, count: int) -> int:
    """Land some messages of probes that send `RATE` in total, one file per 15 minutes. Returns the bytes."""
    dice = np.random.default_rng(7)
    minutes = -(-count // (RATE * 60))
    quiet = shape(dice, 20, 3, minutes)
    written, size, day = 0, 0, datetime.fromtimestamp(START, UTC).date().isoformat()
    for stretch in Simulation(quiet, (), dice, START, minutes).stretches(_FILE_MINUTES):
        rows = probing.messages(dice, stretch, quiet.node_names, "run", RATE / _USUAL_RATE).slice(0, count - written)
        folder = root / PROBE_MESSAGES.name / "cluster=bench" / f"date={day}"
        written, size = written + rows.num_rows, size + _write(rows, folder, stretch.first)
    return size


def write_fleet(root: Path, fleet: Fleet, hours: int, step: int, times: float = 0) -> dict[str, list[int]]:
    """Land the first hours of a cluster, one file per hour; return rows and bytes by table.

    Args:
        root: the landing folder.
        fleet: the cluster.
        hours: number of hours.
        step: seconds between polls.
        times: probe messages, as a multiple of the usual rates.
    """
    found: dict[str, list[int]] = {}
    for number, (hour, tables) in enumerate(fleet.landing(step=step, times=times)):
        if number >= hours:
            break
        for name, rows in tables.items():
            day = datetime.fromtimestamp(hour * 3600, UTC).date().isoformat()
            size = _write(rows, root / name / f"cluster={fleet.cluster}" / f"date={day}", hour)
            totals = found.setdefault(name, [0, 0])
            totals[0], totals[1] = totals[0] + rows.num_rows, totals[1] + size
    return found


def by_hour(landing: Path) -> list[dict[str, Any]]:
    """Return every hour with the files that have its rows; files are named by their start."""
    hours: dict[int, list[str]] = {}
    for path in sorted(landing.rglob("*.parquet")):
        first = int(path.stem)
        hours.setdefault(first - first % 3600, []).append(str(path))
    return [{"start": start, "end": start + 3600, "files": files} for start, files in hours.items()]


def _write(rows: pa.Table, folder: Path, name: int) -> int:
    """Write one landing file and return its bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    pq.write_table(rows, path, compression="zstd")
    return path.stat().st_size

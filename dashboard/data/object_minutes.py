"""Minute rollups of a few objects of one kind, for the curves of what changed about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ackscope import manifest
from ackscope.arrow_files import dataset
from ackscope.object_path import Place
from ackscope.ranking import ObjectKey
from ackscope.tables import CHANNELS_1M, LATENCY_1M, NODES_1M, QUEUES_1M, Kind, Table
from ackscope.tables.arrow import ARROW_TYPES, arrow_schema
from dashboard.data.rollups import read_with_retry

_TABLES: Mapping[str, tuple[Table, str]] = {
    "queue": (QUEUES_1M, "queue"),
    "channel": (CHANNELS_1M, "channel"),
    "node": (NODES_1M, "node"),
    "probe": (LATENCY_1M, "stream"),
}
"""Kind of object -> its table, and the column with its name (of a probe, a part of it)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMinutes:
    """Minute rows of some objects.

    Attributes:
        rows: kind of object -> rows of its table, which may also have other objects; kinds without a table are absent.
        problem: why the history cannot be read; None if it was read.
    """

    rows: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    problem: str | None = None


def object_minutes(
    root: Place, cluster: str, objects: Sequence[ObjectKey], start: datetime, end: datetime
) -> ObjectMinutes:
    """The minutes of some objects from `start` to `end`, both in UTC."""
    names: dict[str, set[str]] = {}
    for kind, _, name in objects:
        if kind in _TABLES:
            # The name of a probe is `probe/stream/node`.
            names.setdefault(kind, set()).add(name.split("/")[1] if kind == "probe" and "/" in name else name)

    def read(known: manifest.Manifest) -> ObjectMinutes:
        return ObjectMinutes(rows={kind: _rows(root, known, kind, mine, start, end) for kind, mine in names.items()})

    found, problem = read_with_retry(root, cluster, read)
    return found if found is not None else ObjectMinutes(problem=problem)


def _rows(
    root: Place, known: manifest.Manifest, kind: str, names: set[str], start: datetime, end: datetime
) -> pd.DataFrame:
    table, column = _TABLES[kind]
    time = ARROW_TYPES[Kind.TIME]
    chosen: Any = (pc.field(table.time) >= pa.scalar(start, time)) & (pc.field(table.time) < pa.scalar(end, time))
    chosen &= pc.field(column).isin(sorted(names))
    files = known.paths(root, table.name, int(start.timestamp() // 3600), -int(-end.timestamp() // 3600))
    if not files:
        empty: pd.DataFrame = arrow_schema(table).empty_table().to_pandas()
        return empty
    data = dataset(files, arrow_schema(table))
    rows: pd.DataFrame = data.to_table(filter=chosen).to_pandas()
    return rows

"""The rollups of the pipeline, read from files. A failure is an answer too: nothing here raises for a bad file.

Other processes replace these files whole and atomically while they are read, and expire old ones: a file that
is gone or different between listing and reading is read once more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ackscope.tables import BURSTS_1M, LATENCY_1M, OUTCOMES_1M, QUEUES_1M, ROLLUPS, Kind, Table

T = TypeVar("T")

WORST_QUEUES = 4

_ARROW = {
    Kind.STRING: pa.string(),
    Kind.INT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.BOOL: pa.bool_(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
}


def schema(table: Table) -> Any:
    """The Arrow schema of a table's files; the partition columns are in the path only."""
    return pa.schema([pa.field(column.name, _ARROW[column.kind], column.nullable) for column in table.columns])


def _empty(table: Table) -> pd.DataFrame:
    frame: pd.DataFrame = schema(table).empty_table().to_pandas()
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The rollups of one cluster between two moments; frames have the columns of their tables.

    Attributes:
        depth: rows of the deepest queues only (`WORST_QUEUES`), by their peak of ready and unacked messages.
        redelivered: one row a minute: `minute`, `redelivered` summed over all queues (null where no queue tells).
        missing: the tables that have no file at all for this cluster.
        problem: why a file could not be read; None where all could.
    """

    latency: pd.DataFrame = field(default_factory=lambda: _empty(LATENCY_1M))
    outcomes: pd.DataFrame = field(default_factory=lambda: _empty(OUTCOMES_1M))
    bursts: pd.DataFrame = field(default_factory=lambda: _empty(BURSTS_1M))
    depth: pd.DataFrame = field(default_factory=lambda: _empty(QUEUES_1M))
    redelivered: pd.DataFrame = field(default_factory=lambda: _empty(QUEUES_1M)[["minute", "redelivered"]])
    missing: tuple[str, ...] = ()
    problem: str | None = None


def clusters(root: Path) -> tuple[str, ...]:
    """Names of all clusters that have rollups."""
    return tuple(sorted({unquote(folder.name[8:]) for name in ROLLUPS for folder in root.glob(f"{name}/cluster=*")}))


def last_minute(root: Path, cluster: str) -> datetime | None:
    """The newest minute that any table holds; None where there is none, or none can be read."""
    newest: list[datetime] = []
    for name in ROLLUPS:
        files = sorted(_files(root, name, cluster), key=lambda file: (file.parent.name, file.name))
        if not files:
            continue
        minutes, _ = _twice(partial(_minutes, files[-1]))
        if minutes is not None and len(minutes):
            newest.append(pc.max(minutes).as_py())
    return max(newest, default=None)


def read(root: Path, cluster: str, start: datetime, end: datetime) -> History:
    """Read what happened from `start` to `end` (exclusive), both in UTC."""
    history, problem = _twice(lambda: _read(root, cluster, start, end))
    return history if history is not None else History(problem=problem)


def _minutes(file: Path) -> Any:
    return ds.dataset(str(file)).to_table(columns=["minute"])["minute"]


def _twice(attempt: Callable[[], T]) -> tuple[T | None, str | None]:
    """The result and no problem, or no result and the problem of the second attempt."""
    for last in (False, True):
        try:
            return attempt(), None
        except (OSError, pa.ArrowException) as error:
            if last:
                return None, str(error).splitlines()[0]
    raise AssertionError


def _read(root: Path, cluster: str, start: datetime, end: datetime) -> History:
    when = (pc.field("minute") >= pa.scalar(start, _ARROW[Kind.TIME])) & (
        pc.field("minute") < pa.scalar(end, _ARROW[Kind.TIME])
    )

    def frame(table: Table) -> pd.DataFrame:
        files = [str(file) for file in _files(root, table.name, cluster, start, end)]
        if not files:
            return _empty(table)
        rows: pd.DataFrame = ds.dataset(files, schema=schema(table)).to_table(filter=when).to_pandas()
        return rows

    depth, redelivered = _queues(list(_files(root, QUEUES_1M.name, cluster, start, end)), when)
    return History(
        latency=frame(LATENCY_1M),
        outcomes=frame(OUTCOMES_1M),
        bursts=frame(BURSTS_1M),
        depth=depth,
        redelivered=redelivered,
        missing=tuple(name for name in ROLLUPS if next(_files(root, name, cluster), None) is None),
    )


def _queues(files: list[Path], when: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The deepest queues, and redeliveries over all queues.

    A day of ten thousand queues is 14 million rows: each hour is reduced by itself, and never held as pandas.
    """
    columns = ["minute", "vhost", "queue", "messages_ready_max", "messages_unacked_max", "redelivered"]
    peaks, sums = [], []
    for file in files:
        rows = ds.dataset(str(file), schema=schema(QUEUES_1M)).to_table(columns=columns, filter=when)
        total = pc.add(pc.coalesce(rows["messages_ready_max"], 0), pc.coalesce(rows["messages_unacked_max"], 0))
        peaks.append(
            rows.select(["vhost", "queue"])
            .append_column("depth", total)
            .group_by(["vhost", "queue"])
            .aggregate([("depth", "max")])
        )
        told = pc.ScalarAggregateOptions(min_count=1)
        sums.append(rows.group_by("minute").aggregate([("redelivered", "sum", told)]))
    if not peaks:
        return History().depth, History().redelivered
    worst = pa.concat_tables(peaks).group_by(["vhost", "queue"]).aggregate([("depth_max", "max")])
    worst = worst.filter(pc.field("depth_max_max") > 0).sort_by(
        [("depth_max_max", "descending"), ("vhost", "ascending"), ("queue", "ascending")]
    )
    chosen = pc.scalar(False)
    for row in worst.slice(0, WORST_QUEUES).to_pylist():
        chosen |= (pc.field("vhost") == row["vhost"]) & (pc.field("queue") == row["queue"])
    depth = ds.dataset([str(file) for file in files], schema=schema(QUEUES_1M)).to_table(filter=when & chosen)
    redelivered = pa.concat_tables(sums).rename_columns({"redelivered_sum": "redelivered"})
    return depth.to_pandas(), redelivered.to_pandas()


def _files(
    root: Path, table: str, cluster: str, start: datetime | None = None, end: datetime | None = None
) -> Iterator[Path]:
    """Files of one table and cluster that may hold rows between two moments, or all of them."""
    for folder in root.glob(f"{table}/cluster=*/date=*"):
        if unquote(folder.parent.name[8:]) != cluster:
            continue
        for file in folder.glob("*.parquet"):
            if file.name[0] in "._":
                continue
            if start is None or end is None:
                yield file
                continue
            hour = _hour(folder.name[5:], file.stem)
            if hour is None or start - timedelta(hours=1) < hour < end:
                yield file


def _hour(date: str, stem: str) -> datetime | None:
    """The hour that a file name tells, `hour=HH`; None where it tells none."""
    try:
        return datetime.fromisoformat(f"{date}T{stem.removeprefix('hour=')}:00:00+00:00")
    except ValueError:
        return None

"""Read the pipeline's rollups from Parquet files. Failures are part of the result: a bad file raises no exception.

The manifest of a cluster lists its files, which are immutable. Replaced files are deleted some time later, so if a file
is missing, the manifest is read again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ackscope import manifest
from ackscope.arrow_files import dataset
from ackscope.errors import DataError
from ackscope.object_path import Place
from ackscope.tables import BURSTS_1M, HOURS, LATENCY_1M, MINUTES, OUTCOMES_1M, QUEUES_1M, Kind, Table
from ackscope.tables.arrow import ARROW_TYPES, arrow_schema

T = TypeVar("T")

WORST_QUEUES = 4

MAX_MINUTES = timedelta(days=1)
"""A longer range is read from the hours: a day of 10,000 queues has 14 million minutes."""

MANIFESTS = manifest.ManifestCache()
"""Shared by all viewers."""

# The sum of only null values is null, not zero.
_NULL_IF_EMPTY = pc.ScalarAggregateOptions(min_count=1)


def _empty(table: Table) -> pd.DataFrame:
    frame: pd.DataFrame = arrow_schema(table).empty_table().to_pandas()
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class MinuteHistory:
    """The rollups of one cluster in a time range; frames have the columns of the tables of minutes.

    In a range over `MAX_MINUTES` there is one row per hour, whose `minute` is its first.

    Attributes:
        depth: rows of the `WORST_QUEUES` deepest queues only, by their peak of ready and unacked messages.
        redelivered: one row per minute: `minute`, and `redelivered` summed over all queues; null if no queue has it.
        missing: minute tables that have no file for this cluster.
        problem: why a file could not be read; None if all were read.
    """

    latency: pd.DataFrame = field(default_factory=lambda: _empty(LATENCY_1M))
    outcomes: pd.DataFrame = field(default_factory=lambda: _empty(OUTCOMES_1M))
    bursts: pd.DataFrame = field(default_factory=lambda: _empty(BURSTS_1M))
    depth: pd.DataFrame = field(default_factory=lambda: _empty(QUEUES_1M))
    redelivered: pd.DataFrame = field(default_factory=lambda: _empty(QUEUES_1M)[["minute", "redelivered"]])
    missing: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def exists(self) -> bool:
        """Whether the cluster has any history, from any time."""
        return len(self.missing) < len(MINUTES)


def clusters(root: Place) -> tuple[str, ...]:
    """Names of the clusters that have rollups."""
    return manifest.clusters(root)


def last_of_file(path: Place) -> datetime | None:
    """The newest minute in a file of a minute table.

    Raises:
        OSError, pyarrow.ArrowException: the file was deleted, or cannot be read.
    """
    newest: datetime | None = pc.max(dataset([path]).to_table(columns=["minute"])["minute"]).as_py()
    return newest


def last_minute(
    root: Place, cluster: str, of_file: Callable[[Place], datetime | None] = last_of_file
) -> datetime | None:
    """The newest minute in any table; None if there is none, or none can be read.

    Args:
        root: folder of rollups.
        cluster: name of the cluster.
        of_file: `last_of_file`, or a cached version of it: files are immutable.
    """
    newest, complete = _newest(root, cluster, of_file)
    return newest if complete else _newest(root, cluster, of_file)[0]


def read(root: Place, cluster: str, start: datetime, end: datetime, newest: datetime | None = None) -> MinuteHistory:
    """Read the minute rollups from `start` to `end` (exclusive), both in UTC.

    Args:
        root: folder of rollups.
        cluster: name of the cluster.
        start: first minute.
        end: minute after the last one.
        newest: the newest minute of the history. It is left out, and so is its hour: if the pipeline ran during it, its
            counts are too low. None: nothing is left out.
    """
    history, problem = read_with_retry(root, cluster, lambda known: _read(root, known, start, end, newest))
    return history if history is not None else MinuteHistory(problem=problem)


def read_with_retry(root: Place, cluster: str, read: Callable[[manifest.Manifest], T]) -> tuple[T | None, str | None]:
    """Read files that the manifest of a cluster lists; after a failure, read the manifest again and retry once.

    Returns:
        The result and None, or None and the error of the second attempt.
    """
    problem = None
    for _ in range(2):
        try:
            return read(MANIFESTS.read(root, cluster)), None
        except (OSError, pa.ArrowException, DataError) as error:
            problem = str(error).splitlines()[0]
    return None, problem


def _newest(root: Place, cluster: str, of_file: Callable[[Place], datetime | None]) -> tuple[datetime | None, bool]:
    """The newest minute of the tables whose last file can be read, and whether all of them could be read."""
    newest: list[datetime] = []
    complete = True
    try:
        known = MANIFESTS.read(root, cluster)
    except DataError:
        return None, False
    for name in MINUTES:
        files = known.paths(root, name)
        try:
            newest += [minute for file in files[-1:] if (minute := of_file(file)) is not None]
        except (OSError, pa.ArrowException):
            complete = False
    return max(newest, default=None), complete


def _read(
    root: Place, known: manifest.Manifest, start: datetime, end: datetime, newest: datetime | None
) -> MinuteHistory:
    hourly = end - start > MAX_MINUTES
    tables = HOURS if hourly else MINUTES
    time = tables[QUEUES_1M.name].time
    if newest is not None:
        end = min(end, newest.replace(minute=0) if hourly else newest)
    when = (pc.field(time) >= pa.scalar(start, ARROW_TYPES[Kind.TIME])) & (
        pc.field(time) < pa.scalar(end, ARROW_TYPES[Kind.TIME])
    )
    first, last = int(start.timestamp() // 3600), -int(-end.timestamp() // 3600)

    def frame(minutes: Table) -> pd.DataFrame:
        table = tables[minutes.name]
        files = known.paths(root, table.name, first, last)
        if not files:
            return _empty(minutes)
        rows: pd.DataFrame = dataset(files, arrow_schema(table)).to_table(filter=when).to_pandas()
        return rows.rename(columns={time: "minute"})

    queues = tables[QUEUES_1M.name]
    depth, redelivered = _queues(known.paths(root, queues.name, first, last), queues, when)
    return MinuteHistory(
        latency=frame(LATENCY_1M),
        outcomes=frame(OUTCOMES_1M),
        bursts=frame(BURSTS_1M),
        depth=depth,
        redelivered=redelivered,
        missing=tuple(name for name in MINUTES if not known.files_for(name)),
    )


def _queues(files: Sequence[Place], table: Table, when: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The deepest queues, and redeliveries over all queues.

    One day of 10,000 queues is 14 million rows: each batch is aggregated alone and never converted to pandas.
    """
    columns = [table.time, "vhost", "queue", "messages_ready_max", "messages_unacked_max", "redelivered"]
    peaks, sums = [], []
    for batch in _batches(files, table, columns, when):
        rows = pa.Table.from_batches([batch])
        total = pc.add(pc.coalesce(rows["messages_ready_max"], 0), pc.coalesce(rows["messages_unacked_max"], 0))
        peaks.append(
            rows.select(["vhost", "queue"])
            .append_column("depth", total)
            .group_by(["vhost", "queue"])
            .aggregate([("depth", "max")])
        )
        sums.append(rows.group_by(table.time).aggregate([("redelivered", "sum", _NULL_IF_EMPTY)]))
    if not peaks:
        return MinuteHistory().depth, MinuteHistory().redelivered
    worst = pa.concat_tables(peaks).group_by(["vhost", "queue"]).aggregate([("depth_max", "max")])
    worst = worst.filter(pc.field("depth_max_max") > 0).sort_by(
        [("depth_max_max", "descending"), ("vhost", "ascending"), ("queue", "ascending")]
    )
    deepest = pc.scalar(False)
    for row in worst.slice(0, WORST_QUEUES).to_pylist():
        deepest |= (pc.field("vhost") == row["vhost"]) & (pc.field("queue") == row["queue"])
    depth = dataset(files, arrow_schema(table)).to_table(filter=when & deepest)
    summed = pa.concat_tables(sums).group_by(table.time).aggregate([("redelivered_sum", "sum", _NULL_IF_EMPTY)])
    redelivered = summed.rename_columns({"redelivered_sum_sum": "redelivered"})
    names = {table.time: "minute"}
    return depth.to_pandas().rename(columns=names), redelivered.to_pandas().rename(columns=names)


def _batches(files: Sequence[Place], table: Table, columns: list[str], when: Any) -> Iterator[Any]:
    for file in files:
        pieces = dataset([file], arrow_schema(table)).to_batches(columns=columns, filter=when)
        yield from (piece for piece in pieces if piece.num_rows)

"""Results of the pipeline's analysis, read from its files: reports, changes, baselines.

Failures are part of the result; files are read as in `dashboard.data.rollups`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ackscope import manifest
from ackscope.arrow_files import dataset
from ackscope.object_path import Place
from ackscope.ranking import ChangePoint, FindingEpisode
from ackscope.tables import BASELINES, CHANGES, EPISODES, HOURS, NODES_1M, OUTCOMES_1M, POLLS_1M, QUEUES_1M, Table
from ackscope.tables.arrow import arrow_schema
from dashboard.data.rollups import read_with_retry

FOLDER, BACKTEST_FOLDER, VERSION = "_answers", "_backtest", 1
_HOUR = 3600

BAND_COLUMNS = (
    "minute",
    "messages_ready_last",
    "messages_unacked_last",
    "published",
    "delivered",
    "acked",
    "redelivered",
    "consumers_last",
)
"""The time and the columns of `queues_1m` that a page of one queue shows. Each further one costs time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAnswers:
    """The hourly reports of the pipeline.

    Attributes:
        document: the JSON document of `ackscope pipeline`; empty if there is none yet.
        problem: why it cannot be read; None if it was read or does not exist.
    """

    document: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesInRange:
    """Change points and finding episodes in a time range.

    Attributes:
        shifts: change points.
        episodes: findings that were active.
        analysed: the pipeline has analysed the history at least once.
        hours_with_data: hours of the range that have data.
        hours: hours of the range.
        problem: why the history cannot be read; None if it was read.
    """

    shifts: tuple[ChangePoint, ...] = ()
    episodes: tuple[FindingEpisode, ...] = ()
    analysed: bool = False
    hours_with_data: int = 0
    hours: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBands:
    """Minute rows and baseline bands of one queue.

    Attributes:
        minutes: rows of `queues_1m`, in order of time, with the columns `BAND_COLUMNS`.
        bands: rows of `baselines`, one per metric and hour of the week.
        problem: why the history cannot be read; None if it was read.
    """

    minutes: pd.DataFrame = field(default_factory=pd.DataFrame)
    bands: pd.DataFrame = field(default_factory=pd.DataFrame)
    problem: str | None = None


def answers(root: Place, cluster: str) -> HistoryAnswers:
    """Read the report document of a cluster."""
    return _document(root / FOLDER / f"{quote(cluster, safe='')}.json", "analyse")


def backtest(root: Place, cluster: str) -> HistoryAnswers:
    """Read the last backtest of a cluster."""
    return _document(root / BACKTEST_FOLDER / f"{quote(cluster, safe='')}.json", "backtest")


def _document(path: Place, job: str) -> HistoryAnswers:
    try:
        document: dict[str, Any] = orjson.loads(path.read_bytes())
        if document["version"] != VERSION:
            return HistoryAnswers(problem=f"{path} has version {document['version']}, expected {VERSION}")
    except FileNotFoundError:
        return HistoryAnswers()
    except OSError as error:
        return HistoryAnswers(problem=f"{path} cannot be read: {error.strerror}")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return HistoryAnswers(problem=f"{path} is not a report document; recreate it with `ackscope pipeline {job}`")
    return HistoryAnswers(document=document)


def changes(root: Place, cluster: str, start: datetime, end: datetime) -> ChangesInRange:
    """Change points and finding episodes from `start` to `end`, both in UTC."""

    def read(known: manifest.Manifest) -> ChangesInRange:
        shifts, episodes = (_table(root, known, table, start, end).to_pylist() for table in (CHANGES, EPISODES))
        return ChangesInRange(
            shifts=tuple(map(ChangePoint.of, shifts)),
            episodes=tuple(map(FindingEpisode.of, episodes)),
            analysed=bool(known.files_for(CHANGES.name) or known.files_for(BASELINES.name)),
            hours_with_data=len(_hours_with_data(root, known, start, end)),
            hours=max(1, round((end - start).total_seconds() / _HOUR)),
        )

    found, problem = read_with_retry(root, cluster, read)
    return found if found is not None else ChangesInRange(problem=problem)


def queue_bands(root: Place, cluster: str, vhost: str, queue: str, start: datetime, end: datetime) -> QueueBands:
    """One queue from `start` to `end`, both in UTC, and its bands for the hours of the week in this range."""

    def read(known: manifest.Manifest) -> QueueBands:
        mine = (pc.field("vhost") == vhost) & (pc.field("queue") == queue)
        minutes = _table(root, known, QUEUES_1M, start, end, mine, BAND_COLUMNS).sort_by("minute")
        first = int(start.timestamp() // _HOUR)
        hours = [(hour + 3 * 24) % 168 for hour in range(first, int(-(-end.timestamp() // _HOUR)))]
        usual = (pc.field("kind") == "queue") & (pc.field("vhost") == vhost) & (pc.field("name") == queue)
        paths = (path for hour in sorted(set(hours)) for path in known.paths(root, BASELINES.name, hour, hour + 1))
        bands = _read(tuple(dict.fromkeys(paths)), BASELINES, usual & pc.field("hour_of_week").isin(sorted(set(hours))))
        return QueueBands(minutes=minutes.to_pandas(), bands=bands.to_pandas())

    found, problem = read_with_retry(root, cluster, read)
    return found if found is not None else QueueBands(problem=problem)


def node_minutes(root: Place, cluster: str, start: datetime, end: datetime) -> pd.DataFrame:
    """Rows of `nodes_1m` from `start` to `end`, both in UTC; none if they cannot be read."""

    def read(known: manifest.Manifest) -> pd.DataFrame:
        rows: pd.DataFrame = _table(root, known, NODES_1M, start, end).to_pandas()
        return rows

    found, _ = read_with_retry(root, cluster, read)
    return pd.DataFrame() if found is None else found


def _hours_with_data(root: Place, known: manifest.Manifest, start: datetime, end: datetime) -> set[datetime]:
    """The hours with data, from the smallest table that has files: polls, else probes, else queues.

    The newest hours may have minutes only: the tables of hours follow a minute later.
    """
    floor = datetime.fromtimestamp(start.timestamp() // _HOUR * _HOUR, UTC)
    first, last = int(floor.timestamp() // _HOUR), int(-(-end.timestamp() // _HOUR))
    for table in (POLLS_1M, OUTCOMES_1M, QUEUES_1M):
        hourly, minutes = HOURS[table.name], known.files_for(table.name, first, last)
        if known.files_for(hourly.name) or minutes:
            fresh = {int(hour) for it in minutes for hour in it.parts if first <= int(hour) < last}
            return {
                *_table(root, known, hourly, floor, end, columns=("hour",))["hour"].to_pylist(),
                *(datetime.fromtimestamp(hour * _HOUR, UTC) for hour in fresh),
            }
    return set()


def _table(
    root: Place,
    known: manifest.Manifest,
    table: Table,
    start: datetime,
    end: datetime,
    condition: Any = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    kind = pa.timestamp("us", tz="UTC")
    inside = (pc.field(table.time) >= pa.scalar(start, kind)) & (pc.field(table.time) < pa.scalar(end, kind))
    first, last = int(start.timestamp() // _HOUR), int(-(-end.timestamp() // _HOUR))
    files = known.paths(root, table.name, first, last)
    return _read(files, table, inside if condition is None else inside & condition, columns)


def _read(paths: Sequence[Place], table: Table, condition: Any, columns: Sequence[str] | None = None) -> pa.Table:
    names = list(columns or table.names)
    if not paths:
        return arrow_schema(table).empty_table().select(names)
    return dataset(paths, arrow_schema(table)).to_table(columns=names, filter=condition)

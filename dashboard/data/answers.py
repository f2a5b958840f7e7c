"""What the pipeline found in the history, read from its files: answers, moves, bands. A failure is an answer too.

As for `dashboard.data.rollups`: files are immutable and named by the manifest; where one is gone, it is asked again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ackscope import manifest
from ackscope.errors import DataError
from ackscope.ranking import ChangePoint, FindingEpisode
from ackscope.tables import BASELINES, CHANGES, EPISODES, HOURS, OUTCOMES_1M, POLLS_1M, QUEUES_1M, Table
from ackscope.tables.arrow import arrow_schema
from dashboard.data.rollups import MANIFESTS

T = TypeVar("T")

FOLDER, VERSION = "_answers", 1
_HOUR = 3600

BANDED = (
    "minute",
    "messages_ready_last",
    "messages_unacked_last",
    "published",
    "delivered",
    "acked",
    "redelivered",
)
"""The columns of `queues_1m` that a band can be held against: of ten thousand queues each column more is felt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The standing questions, answered by the pipeline once an hour.

    Attributes:
        document: as `ackscope pipeline` wrote it; empty where it wrote none yet.
        problem: why it cannot be read; None where it could, or is not there.
    """

    document: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What moved in a span of time.

    Attributes:
        looked: shifts were looked for at all.
        watched: hours of the span that have data, and `hours` that there are.
    """

    shifts: tuple[ChangePoint, ...] = ()
    told: tuple[FindingEpisode, ...] = ()
    looked: bool = False
    watched: int = 0
    hours: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Banded:
    """One queue's minutes, and what is usual at their hours.

    Attributes:
        minutes: rows of `queues_1m`, in order, with the columns `BANDED`.
        bands: rows of `baselines` by hour of the week.
    """

    minutes: pd.DataFrame = field(default_factory=pd.DataFrame)
    bands: pd.DataFrame = field(default_factory=pd.DataFrame)
    problem: str | None = None


def answers(root: Path, cluster: str) -> Answers:
    """The file of answers of a cluster."""
    path = root / FOLDER / f"{quote(cluster, safe='')}.json"
    try:
        document: dict[str, Any] = orjson.loads(path.read_bytes())
        if document["version"] != VERSION:
            return Answers(problem=f"{path} is of version {document['version']}, this page knows {VERSION}")
    except FileNotFoundError:
        return Answers()
    except OSError as error:
        return Answers(problem=f"{path} cannot be read: {error.strerror}")
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return Answers(problem=f"{path} is no file of answers; `ackscope pipeline analyse` writes it anew")
    return Answers(document=document)


def moves(root: Path, cluster: str, start: datetime, end: datetime) -> Moves:
    """Shifts and findings from `start` to `end`, both in UTC."""

    def read(known: manifest.Manifest) -> Moves:
        shifts, told = (_rows(root, known, table, start, end) for table in (CHANGES, EPISODES))
        hours = _watched(root, known, start, end)
        return Moves(
            shifts=tuple(map(ChangePoint.of, shifts)),
            told=tuple(map(FindingEpisode.of, told)),
            looked=bool(known.files_for(CHANGES.name) or known.files_for(BASELINES.name)),
            watched=len(hours),
            hours=max(1, round((end - start).total_seconds() / _HOUR)),
        )

    found, problem = _twice(root, cluster, read)
    return found if found is not None else Moves(problem=problem)


def banded(root: Path, cluster: str, vhost: str, queue: str, start: datetime, end: datetime) -> Banded:
    """One queue from `start` to `end`, both in UTC, and the bands of the hours of the week between."""

    def read(known: manifest.Manifest) -> Banded:
        mine = (pc.field("vhost") == vhost) & (pc.field("queue") == queue)
        minutes = _table(root, known, QUEUES_1M, start, end, mine, BANDED).sort_by("minute")
        first = int(start.timestamp() // _HOUR)
        hours = [(hour + 3 * 24) % 168 for hour in range(first, int(-(-end.timestamp() // _HOUR)))]
        usual = (pc.field("kind") == "queue") & (pc.field("vhost") == vhost) & (pc.field("name") == queue)
        paths = (path for hour in sorted(set(hours)) for path in known.paths(root, BASELINES.name, hour, hour + 1))
        bands = _read(tuple(dict.fromkeys(paths)), BASELINES, usual & pc.field("hour_of_week").isin(sorted(set(hours))))
        return Banded(minutes=minutes.to_pandas(), bands=bands.to_pandas())

    found, problem = _twice(root, cluster, read)
    return found if found is not None else Banded(problem=problem)


def _watched(root: Path, known: manifest.Manifest, start: datetime, end: datetime) -> set[datetime]:
    """The hours with data, by the smallest table that tells them: readings, else probes, else queues."""
    floor = datetime.fromtimestamp(start.timestamp() // _HOUR * _HOUR, UTC)
    for table in (POLLS_1M, OUTCOMES_1M, QUEUES_1M):
        hourly = HOURS[table.name]
        if known.files_for(hourly.name):
            return set(_table(root, known, hourly, floor, end, columns=("hour",))["hour"].to_pylist())
    return set()


def _rows(root: Path, known: manifest.Manifest, table: Table, start: datetime, end: datetime) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _table(root, known, table, start, end).to_pylist()
    return rows


def _table(
    root: Path,
    known: manifest.Manifest,
    table: Table,
    start: datetime,
    end: datetime,
    chosen: Any = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    kind = pa.timestamp("us", tz="UTC")
    inside = (pc.field(table.time) >= pa.scalar(start, kind)) & (pc.field(table.time) < pa.scalar(end, kind))
    first, last = int(start.timestamp() // _HOUR), int(-(-end.timestamp() // _HOUR))
    files = known.paths(root, table.name, first, last)
    return _read(files, table, inside if chosen is None else inside & chosen, columns)


def _read(paths: Sequence[Path], table: Table, chosen: Any, columns: Sequence[str] | None = None) -> pa.Table:
    wanted = list(columns or table.names)
    if not paths:
        return arrow_schema(table).empty_table().select(wanted)
    return ds.dataset([str(path) for path in paths], schema=arrow_schema(table)).to_table(columns=wanted, filter=chosen)


def _twice(root: Path, cluster: str, read: Callable[[manifest.Manifest], T]) -> tuple[T | None, str | None]:
    """The result and no problem, or no result and the problem of the second attempt, by a new manifest."""
    problem = None
    for _ in range(2):
        try:
            return read(MANIFESTS.read(root, cluster)), None
        except (OSError, pa.ArrowException, DataError) as error:
            problem = str(error).splitlines()[0]
    return None, problem

"""The file layout of rollups: which file of its table an hour belongs to, and the name of that file."""

import re
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ackscope.tables import BASELINES, DAYS, HOURS, MINUTES, Table
from pipeline.hours import HOUR, date_of, first_hour

# Names of rollup files; vacuum never removes anything else.
ROLLUP_FILE = re.compile(r"(hour=\d\d|day|month|week-hour=\d{3})\.[0-9a-f]{16}\.parquet")

TEMPORARY_FILE = re.compile(rf"\.{ROLLUP_FILE.pattern}(\.(?P<token>[0-9a-f]{{8}}))?\.tmp")

_DAYS = {table.name for table in DAYS.values()}
_COARSER = {name: HOURS[name] for name in MINUTES} | {HOURS[name].name: DAYS[name] for name in MINUTES}


@dataclass(frozen=True, slots=True)
class FileSlot:
    """The place of one data file in a table.

    Attributes:
        start, end: the hours that it covers, `end` exclusive.
        prefix: the first part of its file name.
        day: date of its partition folder.
    """

    start: int
    end: int
    prefix: str
    day: date

    def path(self, table: Table, cluster: str, digest: str) -> str:
        """The path of a file with this content digest, relative to the rollup folder."""
        folder = Path(table.name) / f"cluster={quote(cluster, safe='')}" / f"date={self.day.isoformat()}"
        return str(folder / f"{self.prefix}.{digest}.parquet")


def slot_for(table: Table, hour: int, day: date | None = None) -> FileSlot:
    """The slot of an hour; `day` is the partition date for tables whose hours are hours of the week."""
    if table.name == BASELINES.name:
        return FileSlot(hour, hour + 1, f"week-hour={hour:03d}", day or date_of(0))
    day = date_of(hour)
    if table.name in MINUTES:
        return FileSlot(hour, hour + 1, f"hour={hour - first_hour(day):02d}", day)
    if table.name in _DAYS:
        first = day.replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
        return FileSlot(first_hour(first), first_hour(following), "month", first)
    return day_slot(day)


def day_slot(day: date) -> FileSlot:
    """The slot of a whole date."""
    return FileSlot(first_hour(day), first_hour(day) + 24, "day", day)


def hours_per_digest(table: Table) -> int:
    """How many hours share one digest: 24 for tables of hours or days and for small tables, else 1."""
    return 1 if table.name in MINUTES or table.name == BASELINES.name else 24


def row_hours(table: Table, rows: pa.Table) -> pa.ChunkedArray:
    """The hour of each row: since 1970, or of the week for `baselines`."""
    if table.name == BASELINES.name:
        return rows["hour_of_week"]
    return pc.divide(rows[table.time].cast(pa.int64()), HOUR * 1_000_000)


def coarser_table(table: Table) -> Table | None:
    """The table of hours or days that is downsampled from this one."""
    return _COARSER.get(table.name)

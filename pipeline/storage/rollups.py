"""The rollup folder: one file an hour, replaced whole, by one writer at a time."""

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ackscope.errors import DataError
from ackscope.tables import ROLLUPS, Table
from pipeline.hours import HOUR, date_of, first_hour
from pipeline.schema import arrow_schema

log = logging.getLogger(__name__)

STATUS = "_status.json"
_LOCK = "_lock"


class Rollups:
    """The rollup folder, made if it is not there.

    Attributes:
        root: the folder.

    Raises:
        DataError: it cannot be made or written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._counted: dict[Path, tuple[int, int]] = {}
        try:
            root.mkdir(parents=True, exist_ok=True)
            (root / _LOCK).touch()
        except OSError as error:
            raise DataError(
                f"--rollups {root}: cannot be written ({error.strerror}); give a folder of this user"
            ) from None

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Wait until no other process rebuilds here.

        An hour that `run` has read may grow before it is written; a `stream` that wrote the grown hour in between
        would be undone. Files are therefore listed, read and written under this lock; the kernel frees it when
        its holder is killed.
        """
        with (self.root / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def write(self, table: Table, cluster: str, hours: Iterable[int], rows: pa.Table) -> int:
        """Replace the files of these hours by the rows that lie in them; an hour without rows has no file.

        Returns:
            How many files stand there now.

        Raises:
            DataError: a file cannot be written.
        """
        files = 0
        ordered = rows.select(list(table.names)).cast(arrow_schema(table))
        ordered = ordered.sort_by([(name, "ascending") for name in table.key]).combine_chunks()
        number = pc.divide(ordered[table.time].cast(pa.int64()), HOUR * 1_000_000)
        for hour in hours:
            part = ordered.filter(pc.equal(number, hour))
            path = self.path(table, cluster, hour)
            try:
                if part.num_rows:
                    _replace(path, part)
                    files += 1
                else:
                    path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"{path}: cannot be written ({error.strerror}); look at its disk and owner") from None
        return files

    def path(self, table: Table, cluster: str, hour: int) -> Path:
        """The file of one hour."""
        day = date_of(hour)
        name = f"hour={hour - first_hour(day):02d}.parquet"
        return self._folder(table, cluster, day) / name

    def counts(self) -> dict[str, int]:
        """Rows that stand in the rollup files now, by table."""
        counts = dict.fromkeys(ROLLUPS, 0)
        for name in counts:
            for path in (self.root / name).glob("cluster=*/date=*/hour=*.parquet"):
                stamp = path.stat().st_mtime_ns
                if self._counted.get(path, (0, 0))[0] != stamp:
                    self._counted[path] = (stamp, pq.read_metadata(path).num_rows)
                counts[name] += self._counted[path][1]
        return counts

    def sweep(self) -> None:
        """Remove what a killed writer left half written; call as the only writer."""
        for path in self.root.glob("*/cluster=*/date=*/.hour=*.tmp"):
            path.unlink(missing_ok=True)

    def say(self, status: dict[str, Any]) -> None:
        """Replace the status file, which the page and the demo read.

        Raises:
            DataError: it cannot be written.
        """
        temporary = self.root / f".{STATUS}.tmp"
        try:
            temporary.write_bytes(orjson.dumps(status, option=orjson.OPT_INDENT_2) + b"\n")
            temporary.replace(self.root / STATUS)
        except OSError as error:
            raise DataError(
                f"{self.root / STATUS}: cannot be written ({error.strerror}); look at its disk and owner"
            ) from None

    def _folder(self, table: Table, cluster: str, day: date) -> Path:
        return self.root / table.name / f"cluster={cluster}" / f"date={day.isoformat()}"


def _replace(path: Path, rows: pa.Table) -> None:
    """Write beside, make it durable, rename: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

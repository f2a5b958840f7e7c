"""The lag of the rollups behind landing: files that are not rolled up yet, and the age of their oldest row."""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ackscope.arrow_files import parquet_file
from ackscope.object_path import ObjectPath, ObjectStorageError, Place
from ackscope.tables import LANDING, Table
from pipeline.shard import ALL, Shard

# Maximum seconds between the modification of a file and its rename; watermarks are set back by as much.
MARGIN = 60.0

_NAME = re.compile(r"(?:compacted-)?(\d{8}T\d{6})-.*\.parquet")
# Footers are read only of this many of the oldest pending files, and of as many of the newest.
_MAX_FOOTERS = 40


@dataclass(frozen=True, slots=True)
class PendingFiles:
    """Landing files that are not rolled up yet; times in seconds since 1970, None without any.

    Attributes:
        files: number of files.
        oldest: time of the earliest row in the oldest files.
        newest: time of the latest row in the newest files.
    """

    files: int = 0
    oldest: float | None = None
    newest: float | None = None


class LagTracker:
    """Tracks which files of a shard's clusters the stream has ingested. Thread-safe.

    Args:
        landing: the folder.
        watermark: everything that existed at this time, seconds since 1970, was rolled up before this process.
        new: what may wait, with the time at which it was written; None looks into the folder.

    Attributes:
        newest: time of the latest row rolled up, seconds since 1970.
        watermark: everything that existed at this time is rolled up.
    """

    def __init__(
        self,
        landing: Place,
        watermark: float,
        shard: Shard = ALL,
        new: Callable[[], Iterable[tuple[float, Place, Table]]] | None = None,
    ) -> None:
        self.newest: float | None = None
        self.watermark = watermark
        self._landing, self._shard, self._new = Path(str(landing)), shard, new
        self._spans: dict[Place, tuple[float, float] | None] = {}
        self._ingested: set[Place] = set()
        self._lock = threading.Lock()

    def add(self, paths: Iterable[Place], newest: float | None) -> None:
        """Record ingested files; `newest` is the time of their latest row."""
        with self._lock:
            self._ingested.update(paths)
            if newest is not None:
                self.newest = max(newest, self.newest or newest)

    def advance(self, until: float) -> None:
        """Raise the watermark: every file that existed then is rolled up."""
        with self._lock:
            self.watermark = max(self.watermark, until)
            self._ingested = {path for path in self._ingested if _modified(path) >= self.watermark}

    def pending(self) -> PendingFiles:
        """The files that are pending now.

        Raises:
            ObjectStorageError: the storage cannot be used.
        """
        with self._lock:
            watermark, ingested = self.watermark, set(self._ingested)
        found = sorted(
            (
                (changed, path, table)
                for changed, path, table in (
                    _since(self._landing, watermark, self._shard) if self._new is None else self._new()
                )
                if path not in ingested
            ),
            key=itemgetter(0),
        )
        looked = found[:_MAX_FOOTERS] + found[_MAX_FOOTERS:][-_MAX_FOOTERS:]
        # An object is read with a request, so what is known of it is kept.
        self._spans = {path: self._spans.get(path) or _span(path, table) for _, path, table in looked}
        times = [span for span in self._spans.values() if span is not None]
        return PendingFiles(
            len(found),
            min((first for first, _ in times), default=None),
            max((last for _, last in times), default=None),
        )


def _since(landing: Path, watermark: float, shard: Shard) -> Iterator[tuple[float, Place, Table]]:
    """Files modified at or after a time, with that time; only folders modified since are listed."""
    oldest = datetime.fromtimestamp(max(watermark - MARGIN, 0.0), UTC).strftime("%Y%m%dT%H%M%S")
    for table in LANDING.values():
        for folder in (landing / table.name).glob("cluster=*/date=*"):
            if folder.parent.name.removeprefix("cluster=") not in shard or _modified(folder) < watermark:
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        named = _NAME.fullmatch(entry.name)
                        if (
                            entry.name[0] in "._"
                            or not entry.name.endswith(".parquet")
                            or (named and named[1] < oldest)
                        ):
                            continue
                        changed = entry.stat().st_mtime
                        if changed >= watermark:
                            yield changed, Path(entry.path), table
            except OSError:
                # It was removed or is not readable; the stream itself reports the latter.
                continue


def _modified(path: Place) -> float:
    try:
        return ((isinstance(path, ObjectPath) and path.known) or path.stat()).st_mtime
    except OSError:
        return 0.0


def _span(path: Place, table: Table) -> tuple[float, float] | None:
    """Times of the first and the last row; None without rows, or if they cannot be read.

    Not from the statistics of the footer: where these are damaged, Arrow ends the process.
    """
    try:
        with parquet_file(path) as file:
            times = file.read(columns=[table.time], use_threads=False)[table.time].cast(pa.int64())
    except ObjectStorageError:
        raise
    except (OSError, pa.ArrowException, KeyError):
        return None
    found = pc.min_max(times).as_py()
    return None if found["min"] is None else (found["min"] / 1e6, found["max"] / 1e6)

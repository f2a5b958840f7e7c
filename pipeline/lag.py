"""How far the rollups are behind landing: which files are not rolled up yet, and how old their oldest row is."""

import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ackscope.tables import LANDING, Table

MARGIN = 60.0
"""Seconds between the change of a file and its rename at most: what is noted for others is set back by as much."""

_NAME = re.compile(r"(?:compacted-)?(\d{8}T\d{6})-.*\.parquet")
_MAX_FOOTERS = 40
"""Waiting files of which the footers are read: the oldest, and as many of the newest."""


@dataclass(frozen=True, slots=True)
class PendingFiles:
    """Landing files that are not rolled up yet; times in seconds since 1970, None where there are none.

    Attributes:
        files: how many.
        oldest: the time of the earliest row of those that came first.
        newest: that of the latest row of those that came last.
    """

    files: int = 0
    oldest: float | None = None
    newest: float | None = None


class LagTracker:
    """Told by the stream what it took; for two threads.

    Args:
        landing: the folder.
        mark: everything that was there at this moment, seconds since 1970, was rolled up before this process.

    Attributes:
        newest: the time of the latest row that was rolled up, seconds since 1970.
        mark: everything that was there at this moment is rolled up.
    """

    def __init__(self, landing: Path, watermark: float) -> None:
        self.newest: float | None = None
        self.watermark = watermark
        self._landing = landing
        self._ingested: set[Path] = set()
        self._lock = threading.Lock()

    def add(self, paths: Iterable[Path], newest: float | None) -> None:
        """These files are rolled up; `newest` is the time of their latest row."""
        with self._lock:
            self._ingested.update(paths)
            if newest is not None:
                self.newest = max(newest, self.newest or newest)

    def advance(self, until: float) -> None:
        """Every file that was there at this moment is rolled up."""
        with self._lock:
            self.watermark = max(self.watermark, until)
            self._ingested = {path for path in self._ingested if _modified(path) >= self.watermark}

    def pending(self) -> PendingFiles:
        """What waits now."""
        with self._lock:
            watermark, ingested = self.watermark, set(self._ingested)
        found = sorted(
            (
                (changed, path, table)
                for changed, path, table in _since(self._landing, watermark)
                if path not in ingested
            ),
            key=itemgetter(0),
        )
        looked = found[:_MAX_FOOTERS] + found[_MAX_FOOTERS:][-_MAX_FOOTERS:]
        times = [span for _, path, table in looked if (span := _span(path, table)) is not None]
        return PendingFiles(
            len(found),
            min((first for first, _ in times), default=None),
            max((last for _, last in times), default=None),
        )


def _since(landing: Path, watermark: float) -> Iterator[tuple[float, Path, Table]]:
    """Files that changed at or after a moment, with when they did; only folders that changed since are looked at."""
    oldest = datetime.fromtimestamp(max(watermark - MARGIN, 0.0), UTC).strftime("%Y%m%dT%H%M%S")
    for table in LANDING.values():
        for folder in (landing / table.name).glob("cluster=*/date=*"):
            if _modified(folder) < watermark:
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
                # It went, or may not be read, which the stream itself says.
                continue


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _span(path: Path, table: Table) -> tuple[float, float] | None:
    """The times of the first and the last row, from the footer; None where it does not tell."""
    try:
        footer = pq.read_metadata(path)
        index = footer.schema.to_arrow_schema().get_field_index(table.time)
        found = [footer.row_group(group).column(index).statistics for group in range(footer.num_row_groups)]
        low, high = (min(it.min_raw for it in found), max(it.max_raw for it in found))
    except (OSError, pa.ArrowException, AttributeError, IndexError, ValueError):
        return None
    return low / 1e6, high / 1e6

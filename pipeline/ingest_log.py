"""Which landing files the rollups tell of: so that a file that comes while others are rolled up is seen whole, too."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ackscope.tables import Table
from pipeline.listing import Files
from pipeline.storage.file_stats import FileStats


class IngestLog:
    """What came before a moment is known; of what came since, what was taken in is remembered.

    Taking a file for new that is not costs its minutes once more, and nothing else: after a restart it happens.

    Args:
        until: all files that came before this moment, seconds since 1970, are rolled up, or will be.
    """

    def __init__(self, watermark: float) -> None:
        self._watermark = watermark
        self._ingested: dict[Path, float] = {}

    def advance(self, watermark: float) -> None:
        """All files that came before this moment are rolled up: they need not be remembered any more."""
        if watermark > self._watermark:
            self._watermark = watermark
            self._ingested = {
                path: arrived_at for path, arrived_at in self._ingested.items() if arrived_at >= watermark
            }

    def contains(self, path: Path) -> bool:
        """Whether this very file was taken in, as far as is remembered."""
        return path in self._ingested

    def is_covered(self, stats: FileStats) -> bool:
        """Whether a file came before the moment."""
        return stats.arrived_at < self._watermark

    def not_ingested(self, files: Iterable[tuple[Path, Table, FileStats]]) -> Files:
        """Those of these files that the rollups may not tell of."""
        return {
            path: (table, stats)
            for path, table, stats in files
            if stats.arrived_at >= self._watermark and path not in self._ingested
        }

    def record(self, files: Mapping[Path, FileStats]) -> None:
        """These files are rolled up, or will be before anybody else looks."""
        self._ingested |= {
            path: stats.arrived_at for path, stats in files.items() if stats.arrived_at >= self._watermark
        }

"""Which landing files are in the rollups, so that a file that arrives during a rebuild is ingested as a whole."""

from collections.abc import Iterable, Mapping

from ackscope.object_path import Place
from ackscope.tables import Table
from pipeline.listing import Files
from pipeline.storage.file_stats import FileStats


class IngestLog:
    """The ingest watermark, and the files ingested after it.

    Ingesting a file twice only costs time; it happens after a restart.

    Args:
        watermark: all files that arrived before this time, seconds since 1970, are rolled up or will be.
    """

    def __init__(self, watermark: float) -> None:
        self._watermark = watermark
        self._ingested: dict[Place, float] = {}

    def advance(self, watermark: float) -> None:
        """Raise the watermark and forget the files before it."""
        if watermark > self._watermark:
            self._watermark = watermark
            self._ingested = {
                path: arrived_at for path, arrived_at in self._ingested.items() if arrived_at >= watermark
            }

    def contains(self, path: Place) -> bool:
        """Whether this file is recorded as ingested after the watermark."""
        return path in self._ingested

    def is_covered(self, stats: FileStats) -> bool:
        """Whether a file arrived before the watermark."""
        return stats.arrived_at < self._watermark

    def not_ingested(self, files: Iterable[tuple[Place, Table, FileStats]]) -> Files:
        """The files that may not be in the rollups."""
        return {
            path: (table, stats)
            for path, table, stats in files
            if stats.arrived_at >= self._watermark and path not in self._ingested
        }

    def record(self, files: Mapping[Place, FileStats]) -> None:
        """Record files that are rolled up, or will be before anyone reads the log."""
        self._ingested |= {
            path: stats.arrived_at for path, stats in files.items() if stats.arrived_at >= self._watermark
        }

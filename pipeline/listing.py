"""The landing files of a cluster at one moment: one snapshot for planning and reading."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from ackscope.object_path import Place
from ackscope.tables import Table
from pipeline.hours import HOUR, date_of
from pipeline.storage.file_stats import FileStats
from pipeline.storage.landing import Landing, Partition
from pipeline.transforms import Transform
from pipeline.work_ranges import MinuteRange

# Landing files, each with its table.
Files = dict[Place, tuple[Table, FileStats]]


class LandingListing:
    """Lists each folder once, on first use, so that all hours and tables see the same files."""

    def __init__(self, landing: Landing, cluster: str) -> None:
        self._landing, self._cluster = landing, cluster
        self._listed: dict[Partition, dict[Place, FileStats]] = {}

    @property
    def seen(self) -> Iterator[tuple[Place, Table, FileStats]]:
        """The files of every folder listed so far."""
        for partition, mine in self._listed.items():
            for path, stats in mine.items():
                yield path, partition.table, stats

    def files(self, table: Table, day: date) -> Mapping[Place, FileStats]:
        """The files of one folder.

        Raises:
            DataError: it cannot be read.
        """
        partition = Partition(table, self._cluster, day)
        if partition not in self._listed:
            self._listed[partition] = self._landing.files(partition)
        return self._listed[partition]

    def rows(self, table: Table, window: MinuteRange) -> int:
        """Total rows of the files that have rows in this range, which is at most one date long."""
        start, end = window
        if start == end:
            return 0
        # A row may be up to a day off the date of its folder.
        days = {date_of(hour + shift) for hour in (start // HOUR, end // HOUR) for shift in (-24, 0, 24)}
        found = (stats for day in days for stats in self.files(table, day).values())
        return sum(stats.rows for stats in found if stats.first < end * 1_000_000 and start * 1_000_000 <= stats.last)

    def rows_of(self, transform: Transform, window: MinuteRange) -> int:
        """Rows that a transform reads for a range."""
        return self.rows(transform.source, window)

    def around(self, table: Table, hours: Iterable[int]) -> dict[Place, FileStats]:
        """The files that may have rows on which these hours depend."""
        # A row may be up to a day off the date of its folder, and transforms with a lookback read an hour more.
        days = sorted({date_of(hour + shift) for hour in hours for shift in (-25, -24, 0, 24, 25)})
        return {path: stats for day in days for path, stats in self.files(table, day).items()}

"""Rebuild the rollups of some dates; the same landing rows give the same rollups."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from ackscope.clock import Clock
from ackscope.object_path import Place
from ackscope.tables import MINUTES
from pipeline import downsample
from pipeline.hours import first_hour
from pipeline.ingest_log import IngestLog
from pipeline.jobs import SessionFactory
from pipeline.lag import MARGIN
from pipeline.progress import NoProgress, Progress
from pipeline.rebuild import rebuild
from pipeline.stop import Stop
from pipeline.storage.landing import Landing, Partition, TouchedHours, require_folder
from pipeline.storage.rollups import Rollups


@dataclass(frozen=True, slots=True)
class DateRange:
    """The dates from `first` to `last`, both inclusive, of one cluster or all."""

    first: date
    last: date
    cluster: str | None = None

    @property
    def days(self) -> tuple[date, ...]:
        """Each of the dates."""
        return tuple(self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))

    def __contains__(self, hour: int) -> bool:
        return first_hour(self.first) <= hour < first_hour(self.last) + 24


@dataclass(slots=True)
class BackfillSummary:
    """What one `backfill` did, or would do.

    Attributes:
        dry_run: nothing was changed.
        clusters: clusters with raw rows or rollups in these dates.
        hours: hours rebuilt, counted per cluster.
        without_raw: hours whose raw rows have expired; their rollups stay.
        landing_rows: rows read, before deduplication.
        rollup_files: new files of minutes; 0 if nothing changed.
        seconds: total time, including Java's start.
    """

    dry_run: bool = False
    clusters: int = 0
    hours: int = 0
    without_raw: int = 0
    landing_rows: int = 0
    rollup_files: int = 0
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """The JSON document; `without_raw` is `kept` there."""
        document = asdict(self)
        return {"kept" if name == "without_raw" else name: value for name, value in document.items()}


def backfill(
    landing_root: Place,
    rollups_root: Place,
    span: DateRange,
    session: SessionFactory,
    clock: Clock,
    *,
    stop: Stop | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    delta: bool = True,
) -> BackfillSummary:
    """Rebuild every hour of these dates that has landing rows, and the hours and days above it.

    Raises:
        AckscopeError: a folder, a file, Java or Spark cannot be used.
        StoppedError: a stop was requested; committed hours are complete.
    """
    start, stop, progress = clock.now(), stop or Stop(), progress or NoProgress()
    require_folder(landing_root)
    landing, rollups, summary = (
        Landing(landing_root, clock),
        Rollups(rollups_root, go_on=stop.go_on, delta=delta),
        BackfillSummary(dry_run),
    )
    ingest_log = IngestLog(start.wall - MARGIN)
    touched: TouchedHours = defaultdict(set)
    for partition in _partitions(landing, span):
        stop.check()
        files = landing.files(partition)
        ingest_log.record(files)
        for stats in files.values():
            mine = {hour for hour in stats.hours if hour in span}
            if mine:
                touched[partition.table, partition.cluster] |= mine
                summary.landing_rows += stats.rows
    there: dict[str, set[int]] = defaultdict(set)
    for (_, cluster), hours in touched.items():
        there[cluster] |= hours
    summary.hours = sum(len(hours) for hours in there.values())
    before = {cluster: _rolled_up(rollups, cluster, span) for cluster in rollups.clusters()}
    before = {cluster: hours for cluster, hours in before.items() if hours and span.cluster in {None, cluster}}
    summary.clusters = len(there.keys() | before.keys())
    summary.without_raw = sum(len(hours - there.get(cluster, set())) for cluster, hours in before.items())
    if there and not dry_run:
        with session() as spark:
            summary.rollup_files = rebuild(spark, landing, rollups, touched, ingest_log, stop.go_on, progress)
            downsample.refresh(spark, rollups, there, stop.go_on)
            stop.check()
    summary.seconds = round(clock.now().since(start), 3)
    return summary


def _partitions(landing: Landing, span: DateRange) -> Iterator[Partition]:
    """The folders that may hold rows of these dates: a row may be up to a day off the date of its folder."""
    first, last = span.first - timedelta(days=1), span.last + timedelta(days=1)
    for partition in landing.partitions():
        if first <= partition.day <= last and span.cluster in {None, partition.cluster}:
            yield partition


def _rolled_up(rollups: Rollups, cluster: str, span: DateRange) -> set[int]:
    manifest = rollups.manifest(cluster)
    found = {int(start) for name in MINUTES for it in manifest.files_for(name) for start in it.parts}
    return {hour for hour in found if hour in span}

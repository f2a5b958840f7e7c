"""Rebuild the rollups of some dates again: the same landing rows give the same rollups."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from ackscope.clock import Clock
from ackscope.tables import MINUTES
from pipeline import coarse
from pipeline.arrivals import Arrivals
from pipeline.hours import first_hour
from pipeline.jobs import Session
from pipeline.lag import MARGIN
from pipeline.progress import Progress, Silent
from pipeline.rebuild import rebuild
from pipeline.stop import Stop
from pipeline.storage.landing import Landing, Partition, Touched, require_folder
from pipeline.storage.rollups import Rollups


@dataclass(frozen=True, slots=True)
class Span:
    """The dates from `first` to `last`, both among them, of one cluster or all."""

    first: date
    last: date
    cluster: str | None = None

    @property
    def days(self) -> tuple[date, ...]:
        """Each of them."""
        return tuple(self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))

    def __contains__(self, hour: int) -> bool:
        return first_hour(self.first) <= hour < first_hour(self.last) + 24


@dataclass(slots=True)
class Summary:
    """What one `backfill` did, or would do.

    Attributes:
        dry_run: nothing was changed.
        clusters: with raw rows or rollups in these dates.
        hours: rebuilt, those of each cluster counted by themselves.
        kept: hours whose raw rows are gone: they stay as they were rolled up.
        landing_rows: that were read, before duplicates are left out.
        rollup_files: files of minutes that are new; 0 where everything was as it should be.
        seconds: from start to end, Java included.
    """

    dry_run: bool = False
    clusters: int = 0
    hours: int = 0
    kept: int = 0
    landing_rows: int = 0
    rollup_files: int = 0
    seconds: float = 0.0


def backfill(
    landing_root: Path,
    rollups_root: Path,
    span: Span,
    session: Session,
    clock: Clock,
    *,
    stop: Stop | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
) -> Summary:
    """Rebuild every hour of these dates of which landing has rows, and the hours and days that are made of them.

    Raises:
        AckscopeError: a folder, a file, Java or Spark cannot be used.
        StoppedError: a stop is wanted; what was rebuilt is whole.
    """
    start, stop, progress = clock.now(), stop or Stop(), progress or Silent()
    require_folder(landing_root)
    landing, rollups, summary = Landing(landing_root, clock), Rollups(rollups_root, go_on=stop.go_on), Summary(dry_run)
    arrivals = Arrivals(start.wall - MARGIN)
    touched: Touched = defaultdict(set)
    for partition in _partitions(landing, span):
        stop.check()
        files = landing.files(partition)
        arrivals.take(files)
        for held in files.values():
            mine = {hour for hour in held.hours if hour in span}
            if mine:
                touched[partition.table, partition.cluster] |= mine
                summary.landing_rows += held.rows
    there: dict[str, set[int]] = defaultdict(set)
    for (_, cluster), hours in touched.items():
        there[cluster] |= hours
    summary.hours = sum(len(hours) for hours in there.values())
    before = {cluster: _rolled_up(rollups, cluster, span) for cluster in rollups.clusters()}
    before = {cluster: hours for cluster, hours in before.items() if hours and span.cluster in {None, cluster}}
    summary.clusters = len(there.keys() | before.keys())
    summary.kept = sum(len(hours - there.get(cluster, set())) for cluster, hours in before.items())
    if there and not dry_run:
        with session() as spark:
            summary.rollup_files = rebuild(spark, landing, rollups, touched, arrivals, stop.go_on, progress)
            for cluster in sorted(there):
                coarse.refresh(spark, rollups, cluster, stop.go_on)
                stop.check()
    summary.seconds = round(clock.now().since(start), 3)
    return summary


def _partitions(landing: Landing, span: Span) -> Iterator[Partition]:
    """The folders that may hold rows of these dates: a row may stand a day off its own."""
    first, last = span.first - timedelta(days=1), span.last + timedelta(days=1)
    for partition in landing.partitions():
        if first <= partition.day <= last and span.cluster in {None, partition.cluster}:
            yield partition


def _rolled_up(rollups: Rollups, cluster: str, span: Span) -> set[int]:
    manifest = rollups.manifest(cluster)
    found = {int(start) for name in MINUTES for it in manifest.files_for(name) for start in it.parts}
    return {hour for hour in found if hour in span}

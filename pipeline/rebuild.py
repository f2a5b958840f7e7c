"""Rebuild the rollups of some hours from their landing rows: complete and idempotent.

Each commit is made under the writer lock from one listing of landing. Any unprocessed files found by that listing are
included in the same commit, so a file that lands meanwhile is visible with all of its rows or none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.object_path import Place
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.executor_writes import is_collected, write_files
from pipeline.frames import bounds, read_files, within
from pipeline.hours import runs
from pipeline.ingest_log import IngestLog
from pipeline.listing import Files, LandingListing
from pipeline.progress import NoProgress, Progress
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.side_by_side import side_by_side
from pipeline.stop import StoppedError
from pipeline.storage.file_stats import FileStats
from pipeline.storage.landing import Landing, TouchedHours
from pipeline.storage.rollups import Rollups
from pipeline.storage.transaction import Transaction
from pipeline.transforms import TRANSFORMS, Transform
from pipeline.work_ranges import (
    GrowthRate,
    MinuteRange,
    Work,
    chunks,
    covering_range,
    exclude,
    hours_of,
    merge_work,
    narrow,
    restrict,
    split_steps,
    whole_hour,
)

T = TypeVar("T")

FilesByTable = Mapping[Table, Mapping[Place, FileStats]]


class _LandingChangedError(Exception):
    """A landing file was quarantined or removed while it was read."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Landing files that were rolled up.

    Attributes:
        requested: files that were passed in, without compacted files whose sources are already rolled up.
        concurrent: files that arrived meanwhile.
    """

    requested: dict[Place, FileStats] = field(default_factory=dict)
    concurrent: dict[Place, FileStats] = field(default_factory=dict)


def rebuild(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    touched: TouchedHours,
    ingest_log: IngestLog | None = None,
    go_on: Callable[[], bool] = lambda: True,
    progress: Progress | None = None,
) -> int:
    """Rebuild every rollup that depends on landing rows of these tables, clusters and hours.

    The result depends on the landing rows alone. All tables of a chunk of hours of one cluster are committed together.
    Several clusters are rebuilt side by side.
    Files that land meanwhile, which are not in `ingest_log`, are ingested as a whole by the first chunk that reads from
    them.

    Returns:
        The number of new files.

    Raises:
        DataError: Spark failed although no landing file is damaged, or a file cannot be written.
        StoppedError: `go_on` returned False.
    """

    def of_cluster(cluster: str) -> int:
        mine = {table: hours for (table, its), hours in touched.items() if its == cluster}
        work = {transform: {hour: whole_hour(hour) for hour in _hours(mine, transform)} for transform in TRANSFORMS}
        job = _Rebuild(spark, landing, rollups, cluster, ingest_log, go_on, progress or NoProgress())
        return job.run(exclude(work, set()))

    return sum(side_by_side(spark, sorted({cluster for _, cluster in touched}), of_cluster))


def ingest(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    paths: Iterable[Place],
    ingest_log: IngestLog,
    go_on: Callable[[], bool] = lambda: True,
    *,
    alone: bool = False,
) -> Ingested:
    """Rebuild the minutes that depend on rows of these landing files, and of files that arrived since.

    All other files must be in the rollups already; their minutes stay. With `alone`, files that arrived after the
    trigger are left for later batches, because there may be too many; rebuilt minutes may then already contain some of
    their rows.

    Raises:
        DataError, StoppedError: same as `rebuild`.
    """
    requested: dict[str, set[Place]] = defaultdict(set)
    for path in paths:
        partition = landing.partition_of(path.parent)
        if partition is not None:
            requested[partition.cluster].add(path)

    def of_cluster(cluster: str) -> Ingested:
        job = _Rebuild(spark, landing, rollups, cluster, ingest_log, go_on, NoProgress(), alone=alone)
        job.run({}, requested[cluster])
        return job.ingested

    ingested = Ingested()
    for it in side_by_side(spark, sorted(requested), of_cluster):
        ingested.requested.update(it.requested)
        ingested.concurrent.update(it.concurrent)
    return ingested


@dataclass(frozen=True, slots=True)
class _CommitPlan:
    """One commit.

    Attributes:
        requested, concurrent: the files that it ingests.
        work: the minutes that it rebuilds, in these portions of hours.
        remaining: work for later commits.
        files: the files that it reads.
    """

    requested: Files
    concurrent: Files
    work: Work
    portions: list[list[int]]
    remaining: Work
    files: FilesByTable


@dataclass(slots=True)
class _Rebuild:
    """The rebuild of one cluster."""

    spark: SparkSession
    landing: Landing
    rollups: Rollups
    cluster: str
    ingest_log: IngestLog | None
    go_on: Callable[[], bool]
    progress: Progress
    alone: bool = False
    ingested: Ingested = field(default_factory=Ingested)
    growth: dict[Transform, GrowthRate] = field(default_factory=dict)

    def run(self, work: Work, paths: Iterable[Place] = ()) -> int:
        """Do this work and ingest these files in as many commits as needed; return the number of new files."""
        written, remaining, requested = 0, work, set(paths)
        self.progress.expect(len(hours_of(work)))
        while remaining or requested:
            with self.rollups.writer_lock(self.cluster):
                plan, transaction = self._stage(remaining, requested)
                written += _count_new_files(transaction.manifest, transaction.commit())
            self._record(plan)
            before, after = hours_of(remaining), hours_of(plan.remaining)
            self.progress.expect(len(after - before))
            self.progress.done(len(before - after))
            remaining, requested = plan.remaining, set()
        return written

    def _record(self, plan: _CommitPlan) -> None:
        requested, concurrent = (
            {path: stats for path, (_, stats) in files.items()} for files in (plan.requested, plan.concurrent)
        )
        self.ingested.requested.update(requested)
        self.ingested.concurrent.update(concurrent)
        if self.ingest_log is not None:
            self.ingest_log.record(requested | concurrent)

    def _stage(self, remaining: Work, requested: set[Place]) -> tuple[_CommitPlan, Transaction]:
        """Stage the next commit; plan again if a landing file turns out to be damaged."""
        while True:
            transaction, floor = self.rollups.transaction(self.cluster), self.landing.floor(self.cluster)
            listing = LandingListing(self.landing, self.cluster)
            plan = self._plan(listing, remaining, requested)
            try:
                for portion in plan.portions:
                    for transform, ranges in plan.work.items():
                        windows = _widen_new_hours(transaction.manifest, transform.rollup, ranges)
                        # Skip hours whose raw rows expired meanwhile: their rollups would be replaced with nothing.
                        for run in runs(hour for hour in portion if hour in windows and hour >= floor):
                            self._upsert(
                                transaction, listing, plan.files, transform, {hour: windows[hour] for hour in run}
                            )
            except _LandingChangedError:
                continue
            return plan, transaction

    def _upsert(
        self,
        transaction: Transaction,
        listing: LandingListing,
        files: FilesByTable,
        transform: Transform,
        windows: Mapping[int, MinuteRange],
    ) -> None:
        """Rebuild these minutes of consecutive hours."""
        growth = self.growth.setdefault(transform, GrowthRate(transform.max_growth))
        hours = sorted(windows)
        each = listing.rows_of(transform, covering_range(windows, hours)) / len(hours)
        if not is_collected(self.spark, each * len(hours) * growth.factor):
            window = covering_range(windows, hours)
            plans = transaction.plan(transform.rollup, [window])
            write = partial(write_files, plans=plans, store=transaction.store)
            written = self._compute(files, transform, window, write)
            if written is None:
                transaction.upsert_range(transform.rollup, *window, arrow_schema(transform.rollup).empty_table())
                return
            for plan, it in zip(plans, written, strict=True):
                if not transaction.stage(plan, it):
                    raise DataError(
                        f"{self.rollups.root / it.path}: an executor wrote it, and it is not here; if the workers have "
                        "this folder under the same path, it was removed meanwhile: run it again"
                    )
            if window == _whole(hours) and all(len(plan.hours) == plan.slot.end - plan.slot.start for plan in plans):
                growth.update(each * len(hours), sum(it.rows for it in written))
            return
        for step in split_steps(hours, each, growth):
            window = covering_range(windows, step)
            rows = self._compute(files, transform, window, DataFrame.toArrow)
            if rows is None:
                rows = arrow_schema(transform.rollup).empty_table()
            growth.update(each * len(step), rows.num_rows)
            transaction.upsert_range(transform.rollup, *window, rows)

    def _plan(self, listing: LandingListing, remaining: Work, paths: set[Place]) -> _CommitPlan:
        requested, concurrent = self._requested_files(listing, paths), Files()
        while True:
            arrived = _work_of(listing, self._not_ingested(requested) | concurrent)
            pieces = list(chunks(arrived, listing.rows_of))
            first = pieces[0] if pieces else []
            # Each commit also does some of the remaining work, so that it finishes even while files keep arriving.
            rest = [] if len(pieces) > 1 else next(chunks(remaining, listing.rows_of), [])
            theirs, mine = ({hour for portion in portions for hour in portion} for portions in (first, rest))
            first = [portion for hours in first if (portion := [hour for hour in hours if hour not in mine])]
            work = merge_work(restrict(remaining, mine), restrict(arrived, theirs | mine))
            later = merge_work(exclude(remaining, mine), exclude(arrived, theirs | mine))
            tables = {table for transform in work for table in transform.sources}
            files = {table: listing.around(table, theirs | mine) for table in tables}
            # The listing may have read more folders meanwhile, with more new files.
            found = self._new_files(listing, requested)
            if found.keys() == concurrent.keys():
                return _CommitPlan(requested, concurrent, work, [*first, *rest], later, files)
            concurrent = found

    def _requested_files(self, listing: LandingListing, paths: set[Place]) -> Files:
        """The passed files that count and may hold new rows."""
        found: Files = {}
        for path in paths:
            partition = self.landing.partition_of(path.parent)
            stats = None if partition is None else listing.files(partition.table, partition.day).get(path)
            if partition is None or stats is None:
                continue
            if self.ingest_log is not None and self.landing.is_compacted(path) and self.ingest_log.is_covered(stats):
                continue
            found[path] = partition.table, stats
        return found

    def _not_ingested(self, requested: Files) -> Files:
        """The requested files that no earlier commit ingested concurrently."""
        known = self.ingest_log
        return requested if known is None else {path: it for path, it in requested.items() if not known.contains(path)}

    def _new_files(self, listing: LandingListing, requested: Files) -> Files:
        if self.ingest_log is None or self.alone:
            return {}
        return {path: it for path, it in self.ingest_log.not_ingested(listing.seen).items() if path not in requested}

    def _compute(
        self, files: FilesByTable, transform: Transform, window: MinuteRange, use: Callable[[DataFrame], T]
    ) -> T | None:
        """What `use` makes of the rollup rows of these minutes; None if there are no landing rows.

        Raises:
            DataError: a file cannot be written, or the rows cannot be computed.
            _LandingChangedError: a landing file was removed, or was damaged and is now quarantined.
        """
        if not self.go_on():
            raise StoppedError
        start, end = window
        low, high = start - transform.lookback, end + transform.lookback
        first, last = low * 1_000_000, high * 1_000_000
        paths = {
            table: [path for path, stats in files[table].items() if stats.first < last and first <= stats.last]
            for table in transform.sources
        }
        if not paths[transform.source]:
            return None
        try:
            nearby = bounds(self.spark, low=low, high=high)
            frames = [
                within(read_files(self.spark, table, paths[table]), table.time, nearby) for table in transform.sources
            ]
            output_bounds = [bounds(self.spark, start=start, end=end)] if transform.lookback else []
            return use(transform.build(*frames, *output_bounds))
        except SPARK_ERRORS as error:
            if not self.go_on():
                raise StoppedError from None
            if sum(self.landing.quarantine_damaged(table, paths[table]) for table in transform.sources):
                raise _LandingChangedError from None
            folder = str(self.landing.root / transform.source.name)
            what = f"{transform.rollup.name} of cluster {self.cluster} could not be computed from {folder}"
            raise job_failure(error, what, folder) from None


def _work_of(listing: LandingListing, files: Files) -> Work:
    """The minutes that depend on rows of these files, if all other files are in the rollups."""
    touched: dict[Table, set[int]] = defaultdict(set)
    nearby: dict[Table, set[int]] = defaultdict(set)
    spans: dict[Table, list[tuple[int, int]]] = defaultdict(list)
    for table, stats in files.values():
        touched[table] |= stats.hours
        nearby[table] |= stats.nearby_hours
        spans[table].append((stats.first, stats.last))
    work: Work = {}
    for transform in TRANSFORMS:
        hours = _hours(touched, transform)
        if transform.lookback:
            # An hour without landing rows keeps its rollup.
            adjacent = _hours(nearby, transform) - hours
            hours |= {hour for hour in adjacent if listing.rows(transform.source, whole_hour(hour))}
        mine = [span for table in transform.sources for span in spans[table]]
        windows = narrow(hours, mine, transform.lookback)
        if windows:
            work[transform] = windows
    return work


def _whole(hours: Sequence[int]) -> MinuteRange:
    return whole_hour(hours[0])[0], whole_hour(hours[-1])[1]


def _hours(touched: Mapping[Table, set[int]], transform: Transform) -> set[int]:
    return set[int]().union(*(touched.get(table, set()) for table in transform.sources))


def _widen_new_hours(manifest: Manifest, table: Table, windows: Mapping[int, MinuteRange]) -> Mapping[int, MinuteRange]:
    """Ranges widened to the whole hour where the rollups have no rows of that hour yet."""
    known = {start for it in manifest.files_for(table.name) for start in it.parts}
    return {hour: window if str(hour) in known else whole_hour(hour) for hour, window in windows.items()}


def _count_new_files(before: Manifest, after: Manifest) -> int:
    """Data files that are in the second manifest and not in the first."""
    known = {it.path for files in before.tables.values() for it in files}
    return sum(it.path not in known for files in after.tables.values() for it in files)

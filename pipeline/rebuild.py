"""Rebuild the rollups of some hours from their landing rows: whole, and the same however often it is done.

Each commit is made as the only writer, of one look at landing. What that look finds and the rollups may not tell of is
made part of the same commit: so a file that lands meanwhile is seen with all of its rows, or with none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.frames import bounds, read_files, within
from pipeline.hours import runs
from pipeline.ingest_log import IngestLog
from pipeline.listing import Files, LandingListing
from pipeline.progress import NoProgress, Progress
from pipeline.session import SPARK_ERRORS, cause
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

FilesByTable = Mapping[Table, Mapping[Path, FileStats]]


class _LandingChangedError(Exception):
    """A landing file was set apart, or went, while it was read."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """Landing files that are rolled up now.

    Attributes:
        given: those that were asked for, without those put together of others that are rolled up.
        beside: those that came meanwhile.
    """

    requested: dict[Path, FileStats] = field(default_factory=dict)
    concurrent: dict[Path, FileStats] = field(default_factory=dict)


def rebuild(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    touched: TouchedHours,
    ingest_log: IngestLog | None = None,
    go_on: Callable[[], bool] = lambda: True,
    progress: Progress | None = None,
) -> int:
    """Make anew every rollup that depends on landing rows of the tables, clusters and hours `touched`.

    The result depends on the landing rows alone. All tables of a chunk of hours of one cluster change at once. Files
    that are not of `arrivals`, because they land meanwhile, are taken in whole by the chunk that first reads of them.

    Returns:
        How many files are new.

    Raises:
        DataError: Spark failed for a reason that lies in no landing file, or a file cannot be written.
        StoppedError: `go_on` said no.
    """
    written = 0
    for cluster in sorted({cluster for _, cluster in touched}):
        mine = {table: hours for (table, its), hours in touched.items() if its == cluster}
        work = {transform: {hour: whole_hour(hour) for hour in _hours(mine, transform)} for transform in TRANSFORMS}
        job = _Rebuild(spark, landing, rollups, cluster, ingest_log, go_on, progress or NoProgress())
        written += job.run(exclude(work, set()))
    return written


def ingest(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    paths: Iterable[Path],
    ingest_log: IngestLog,
    go_on: Callable[[], bool] = lambda: True,
    *,
    alone: bool = False,
) -> Ingested:
    """Make anew the minutes that depend on rows of these landing files, and of those that came since.

    All others must be in the rollups already: their minutes stay as they are. With `alone`, what came since waits for
    its turn, for there may be too much of it; minutes that are made anew then tell of it before others do.

    Raises:
        DataError, StoppedError: as of `rebuild`.
    """
    requested: dict[str, set[Path]] = defaultdict(set)
    for path in paths:
        partition = landing.partition_of(path.parent)
        if partition is not None:
            requested[partition.cluster].add(path)
    ingested = Ingested()
    for cluster, mine in sorted(requested.items()):
        job = _Rebuild(spark, landing, rollups, cluster, ingest_log, go_on, NoProgress(), alone=alone)
        job.run({}, mine)
        ingested.requested.update(job.ingested.requested)
        ingested.concurrent.update(job.ingested.concurrent)
    return ingested


@dataclass(frozen=True, slots=True)
class _CommitPlan:
    """One commit.

    Attributes:
        given, beside: what it takes in.
        work: what it makes anew, in these portions of hours.
        left: what is for the commits after it.
        listing: the files that it reads.
    """

    requested: Files
    concurrent: Files
    work: Work
    portions: list[list[int]]
    remaining: Work
    files: FilesByTable


@dataclass(slots=True)
class _Rebuild:
    """Of one cluster."""

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

    def run(self, work: Work, paths: Iterable[Path] = ()) -> int:
        """Do this work, and take in these files, in as many commits as it takes; how many files are new."""
        written, remaining, requested = 0, work, set(paths)
        self.progress.expect(len(hours_of(work)))
        while remaining or requested:
            with self.rollups.writer_lock():
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

    def _stage(self, remaining: Work, requested: set[Path]) -> tuple[_CommitPlan, Transaction]:
        """The next commit; planned anew where a landing file proves bad on the way."""
        while True:
            transaction, floor = self.rollups.transaction(self.cluster), self.landing.floor(self.cluster)
            listing = LandingListing(self.landing, self.cluster)
            plan = self._plan(listing, remaining, requested)
            try:
                for portion in plan.portions:
                    for transform, ranges in plan.work.items():
                        windows = _widen_new_hours(transaction.manifest, transform.rollup, ranges)
                        # What expired since it was touched would be replaced by nothing.
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
        """Make anew these minutes of hours without a gap between them."""
        growth = self.growth.setdefault(transform, GrowthRate(transform.max_growth))
        hours = sorted(windows)
        each = listing.rows_of(transform, covering_range(windows, hours)) / len(hours)
        for step in split_steps(hours, each, growth):
            window = covering_range(windows, step)
            rows = self._compute(files, transform, window)
            growth.update(each * len(step), rows.num_rows)
            transaction.upsert_range(transform.rollup, *window, rows)

    def _plan(self, listing: LandingListing, remaining: Work, paths: set[Path]) -> _CommitPlan:
        requested, concurrent = self._requested_files(listing, paths), Files()
        while True:
            arrived = _work_of(listing, self._not_ingested(requested) | concurrent)
            pieces = list(chunks(arrived, listing.rows_of))
            first = pieces[0] if pieces else []
            # With what arrived, always some of the rest: it must come to its end while files keep arriving.
            rest = [] if len(pieces) > 1 else next(chunks(remaining, listing.rows_of), [])
            theirs, mine = ({hour for portion in portions for hour in portion} for portions in (first, rest))
            first = [portion for hours in first if (portion := [hour for hour in hours if hour not in mine])]
            work = merge_work(restrict(remaining, mine), restrict(arrived, theirs | mine))
            later = merge_work(exclude(remaining, mine), exclude(arrived, theirs | mine))
            tables = {table for transform in work for table in transform.sources}
            files = {table: listing.around(table, theirs | mine) for table in tables}
            # Looking may have opened folders in which something arrived, too.
            found = self._new_files(listing, requested)
            if found.keys() == concurrent.keys():
                return _CommitPlan(requested, concurrent, work, [*first, *rest], later, files)
            concurrent = found

    def _requested_files(self, listing: LandingListing, paths: set[Path]) -> Files:
        """Those of these files that count and may hold new rows."""
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
        """Without those that an earlier commit found beside its own."""
        known = self.ingest_log
        return requested if known is None else {path: it for path, it in requested.items() if not known.contains(path)}

    def _new_files(self, listing: LandingListing, requested: Files) -> Files:
        if self.ingest_log is None or self.alone:
            return {}
        return {path: it for path, it in self.ingest_log.not_ingested(listing.seen).items() if path not in requested}

    def _compute(self, files: FilesByTable, transform: Transform, window: MinuteRange) -> pa.Table:
        """The rollup rows of these minutes; damaged files are set apart on the way."""
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
            return arrow_schema(transform.rollup).empty_table()
        try:
            nearby = bounds(self.spark, low=low, high=high)
            frames = [
                within(read_files(self.spark, table, paths[table]), table.time, nearby) for table in transform.sources
            ]
            output_bounds = [bounds(self.spark, start=start, end=end)] if transform.lookback else []
            return transform.build(*frames, *output_bounds).toArrow()
        except SPARK_ERRORS as error:
            if not self.go_on():
                raise StoppedError from None
            if sum(self.landing.quarantine_damaged(table, paths[table]) for table in transform.sources):
                raise _LandingChangedError from None
            raise DataError(
                f"{transform.rollup.name} of cluster {self.cluster} could not be computed from "
                f"{self.landing.root / transform.source.name}: {cause(error)}"
            ) from None


def _work_of(listing: LandingListing, files: Files) -> Work:
    """Where the rows of these files matter, if all others are in the rollups."""
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
            # One without landing rows keeps the rollup that it may have.
            adjacent = _hours(nearby, transform) - hours
            hours |= {hour for hour in adjacent if listing.rows(transform.source, whole_hour(hour))}
        mine = [span for table in transform.sources for span in spans[table]]
        windows = narrow(hours, mine, transform.lookback)
        if windows:
            work[transform] = windows
    return work


def _hours(touched: Mapping[Table, set[int]], transform: Transform) -> set[int]:
    return set[int]().union(*(touched.get(table, set()) for table in transform.sources))


def _widen_new_hours(manifest: Manifest, table: Table, windows: Mapping[int, MinuteRange]) -> Mapping[int, MinuteRange]:
    """An hour of which nothing is there has no other minutes that could stay."""
    known = {start for it in manifest.files_for(table.name) for start in it.parts}
    return {hour: window if str(hour) in known else whole_hour(hour) for hour, window in windows.items()}


def _count_new_files(before: Manifest, after: Manifest) -> int:
    """Files that count now and did not."""
    known = {it.path for files in before.tables.values() for it in files}
    return sum(it.path not in known for files in after.tables.values() for it in files)

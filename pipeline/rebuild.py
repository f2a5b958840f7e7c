"""Rebuild the rollups of some hours from their landing rows: complete and idempotent.

Each commit is made under the writer lock of its cluster from one listing of its landing files. Any unprocessed files
found by that listing are included in the same commit, so a file that lands meanwhile is visible with all of its rows or
none.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.object_path import ObjectStorageError, Place
from ackscope.tables import Table
from ackscope.tables.arrow import arrow_schema
from pipeline.executor_writes import is_collected, landing_rows, write_files
from pipeline.frames import bounds, distinct_texts, read_files, small_rows, within
from pipeline.hours import runs
from pipeline.ingest_log import IngestLog
from pipeline.listing import Files, LandingListing
from pipeline.progress import NoProgress, Progress
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.side_by_side import rows_of, scope_of, side_by_side, together
from pipeline.stop import StoppedError
from pipeline.storage.file_stats import FileStats
from pipeline.storage.landing import Landing, TouchedHours
from pipeline.storage.rollups import Rollups
from pipeline.storage.transaction import Transaction
from pipeline.transforms import TRANSFORMS, Transform
from pipeline.work_ranges import (
    MAX_LANDING_ROWS,
    GrowthRate,
    MinuteRange,
    Work,
    chunks,
    covering_range,
    exclude,
    hours_of,
    merge_work,
    narrow,
    read_rows,
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
    Small clusters are computed together, and groups of clusters side by side.
    Files that land meanwhile, which are not in `ingest_log`, are ingested as a whole by the first chunk that reads from
    them.

    Returns:
        The number of new files.

    Raises:
        DataError: Spark failed although no landing file is damaged, or a file cannot be written.
        StoppedError: `go_on` returned False.
    """
    by_cluster: dict[str, dict[Table, set[int]]] = defaultdict(dict)
    for (table, cluster), hours in touched.items():
        by_cluster[cluster][table] = hours
    jobs = []
    for cluster, mine in sorted(by_cluster.items()):
        work = {transform: {hour: whole_hour(hour) for hour in _hours(mine, transform)} for transform in TRANSFORMS}
        jobs.append(_ClusterJob(landing, cluster, ingest_log, exclude(work, set())))
    return _run(spark, landing, rollups, jobs, go_on, progress or NoProgress())


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

    jobs = [
        _ClusterJob(landing, cluster, ingest_log, requested=paths, alone=alone)
        for cluster, paths in sorted(requested.items())
    ]
    _run(spark, landing, rollups, jobs, go_on, NoProgress())
    ingested = Ingested()
    for job in jobs:
        ingested.requested.update(job.ingested.requested)
        ingested.concurrent.update(job.ingested.concurrent)
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
class _ClusterJob:
    """What is to be rebuilt of one cluster, and what was ingested.

    Attributes:
        remaining: minutes of earlier landing rows.
        requested: new landing files.
        alone: other new files are left for later.
    """

    landing: Landing
    cluster: str
    ingest_log: IngestLog | None
    remaining: Work = field(default_factory=dict)
    requested: set[Place] = field(default_factory=set)
    alone: bool = False
    ingested: Ingested = field(default_factory=Ingested)

    def size(self) -> int:
        """Landing rows that it reads, about: to decide with which other clusters it is computed."""
        listing = LandingListing(self.landing, self.cluster)
        files = self._not_ingested(self._requested_files(listing))
        return read_rows(merge_work(self.remaining, _work_of(listing, files)), listing.rows_of)

    def record(self, plan: _CommitPlan) -> None:
        """Remember a plan that was committed."""
        requested, concurrent = (
            {path: stats for path, (_, stats) in files.items()} for files in (plan.requested, plan.concurrent)
        )
        self.ingested.requested.update(requested)
        self.ingested.concurrent.update(concurrent)
        if self.ingest_log is not None:
            self.ingest_log.record(requested | concurrent)
        self.remaining, self.requested = plan.remaining, set()

    def plan(self, listing: LandingListing, limit: int) -> _CommitPlan:
        """The next commit, which reads so many landing rows."""
        remaining = self.remaining
        requested, concurrent = self._requested_files(listing), Files()
        while True:
            arrived = _work_of(listing, self._not_ingested(requested) | concurrent)
            pieces = list(chunks(arrived, listing.rows_of, limit))
            first = pieces[0] if pieces else []
            # Each commit also does some of the remaining work, so that it finishes even while files keep arriving.
            rest = [] if len(pieces) > 1 else next(chunks(remaining, listing.rows_of, limit), [])
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

    def _requested_files(self, listing: LandingListing) -> Files:
        """The requested files that count and may hold new rows."""
        found: Files = {}
        for path in self.requested:
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


def _run(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    jobs: Sequence[_ClusterJob],
    go_on: Callable[[], bool],
    progress: Progress,
) -> int:
    """Do these jobs, small clusters together, groups side by side; return the number of new files."""
    by_cluster = {job.cluster: job for job in jobs}
    sizes = side_by_side(spark, jobs, _ClusterJob.size) if len(jobs) > 1 else [0] * len(jobs)

    def of_group(clusters: Sequence[str]) -> int:
        return _GroupRebuild(spark, landing, rollups, go_on, progress).run([by_cluster[it] for it in clusters])

    groups = together(dict(zip(by_cluster, sizes, strict=True)), MAX_LANDING_ROWS)
    return sum(side_by_side(spark, groups, of_group))


@dataclass(frozen=True, slots=True)
class _StagedCommit:
    """One commit of one cluster while it is computed.

    Attributes:
        floor: the first hour since 1970 whose raw rows are complete.
    """

    job: _ClusterJob
    transaction: Transaction
    floor: int
    listing: LandingListing
    plan: _CommitPlan

    def windows(self, transform: Transform, hours: Iterable[int]) -> Mapping[int, MinuteRange]:
        """The minutes to rebuild in these hours."""
        ranges = self.plan.work.get(transform, {})
        known = _widen_new_hours(self.transaction.manifest, transform.rollup, ranges)
        # Without hours whose raw rows expired meanwhile: their rollups would be replaced with nothing.
        return {hour: known[hour] for hour in hours if hour in known and hour >= self.floor}


# The clusters of a group that have minutes to rebuild in a run of hours, each with these minutes.
_Parts = Sequence[tuple[_StagedCommit, Mapping[int, MinuteRange]]]


@dataclass(slots=True)
class _GroupRebuild:
    """The rebuild of one cluster, or of several that are computed together.

    Each query computes the rows of all of them. What it reads covers the minutes of all, so it may make rows of more
    minutes than a cluster rebuilds; the plans of its files leave these out.
    """

    spark: SparkSession
    landing: Landing
    rollups: Rollups
    go_on: Callable[[], bool]
    progress: Progress
    growth: dict[Transform, GrowthRate] = field(default_factory=dict)
    small: dict[object, pa.Table] = field(default_factory=dict)

    def run(self, jobs: Sequence[_ClusterJob]) -> int:
        """Do these jobs in as many commits as needed; return the number of new files."""
        written = 0
        for job in jobs:
            self.progress.expect(len(hours_of(job.remaining)))
        while active := [job for job in jobs if job.remaining or job.requested]:
            with ExitStack() as locks:
                # In the order of their names, as everybody who holds several.
                for job in active:
                    locks.enter_context(self.rollups.writer_lock(job.cluster))
                staged = self._stage(active)
                for it in staged:
                    written += _count_new_files(it.transaction.manifest, it.transaction.commit())
            for it in staged:
                before, after = hours_of(it.job.remaining), hours_of(it.plan.remaining)
                it.job.record(it.plan)
                self.progress.expect(len(after - before))
                self.progress.done(len(before - after))
        return written

    def _stage(self, jobs: Sequence[_ClusterJob]) -> list[_StagedCommit]:
        """Stage the next commit of each; plan again if a landing file turns out to be damaged."""
        limit = landing_rows(self.spark)
        while True:
            staged = []
            for job in jobs:
                transaction, floor = self.rollups.transaction(job.cluster), self.landing.floor(job.cluster)
                listing = LandingListing(self.landing, job.cluster)
                staged.append(_StagedCommit(job, transaction, floor, listing, job.plan(listing, limit)))
            try:
                for portion in _portions(staged):
                    for transform in TRANSFORMS:
                        windows = [(it, it.windows(transform, portion)) for it in staged]
                        for run in runs(hour for _, mine in windows for hour in mine):
                            parts = [(it, _in_hours(mine, run)) for it, mine in windows]
                            self._upsert(transform, run, [(it, mine) for it, mine in parts if mine])
            except _LandingChangedError:
                continue
            return staged

    def _upsert(self, transform: Transform, hours: Sequence[int], parts: _Parts) -> None:
        """Rebuild these minutes of consecutive hours."""
        growth, table = self.growth.setdefault(transform, GrowthRate(transform.max_growth)), transform.rollup
        scope = scope_of(parts)
        rows = sum(it.listing.rows_of(transform, covering_range(mine, mine)) for it, mine in parts)
        if not is_collected(self.spark, rows * growth.factor):
            plans = [(it, plan) for it, mine in parts for plan in it.transaction.plan(table, _ranges(mine))]
            store = parts[0][0].transaction.store
            write = partial(write_files, plans=[plan for _, plan in plans], store=store, scope=scope)
            written = self._compute(transform, parts, write)
            if written is None:
                self._replace(transform, parts, arrow_schema(table).empty_table())
                return
            for (it, plan), file in zip(plans, written, strict=True):
                if not it.transaction.stage(plan, file):
                    raise DataError(
                        f"{self.rollups.root / file.path}: an executor wrote it, and it is not here; if the workers "
                        "have this folder under the same path, it was removed meanwhile: run it again"
                    )
            whole = all(_ranges(mine) == [_whole(hours)] for _, mine in parts)
            if whole and all(len(plan.hours) == plan.slot.end - plan.slot.start for _, plan in plans):
                growth.update(rows, sum(file.rows for file in written))
            return
        each = rows / len(hours)
        for step in split_steps(hours, each, growth):
            some = [(it, mine) for it, all_ in parts if (mine := _in_hours(all_, step))]
            found = self._compute(transform, some, DataFrame.toArrow)
            growth.update(each * len(step), 0 if found is None else found.num_rows)
            self._replace(transform, some, arrow_schema(table).empty_table() if found is None else found)

    def _replace(self, transform: Transform, parts: _Parts, rows: pa.Table) -> None:
        """Replace these minutes by the rows, which have a column `CLUSTER` if they are of several clusters."""
        for it, mine in parts:
            it.transaction.upsert_ranges(transform.rollup, _ranges(mine), rows_of(rows, it.job.cluster))

    def _compute(self, transform: Transform, parts: _Parts, use: Callable[[DataFrame], T]) -> T | None:
        """What `use` makes of the rollup rows of these minutes; None if there are no landing rows.

        With several clusters, the rows have a first column `CLUSTER`.

        Raises:
            DataError: a file cannot be written, or the rows cannot be computed.
            _LandingChangedError: a landing file was removed, or was damaged and is now quarantined.
        """
        if not self.go_on():
            raise StoppedError
        scope = scope_of(parts)
        ranges = [covering_range(mine, mine) for _, mine in parts]
        start, end = min(first for first, _ in ranges), max(last for _, last in ranges)
        low, high = start - transform.lookback, end + transform.lookback
        first, last = low * 1_000_000, high * 1_000_000
        paths: dict[Table, dict[str, list[Place]]] = {table: {} for table in transform.sources}
        for it, _ in parts:
            mine = {
                table: [
                    path for path, stats in it.plan.files[table].items() if stats.first < last and first <= stats.last
                ]
                for table in transform.sources
            }
            for table in transform.sources if mine[transform.source] else ():
                paths[table][it.job.cluster] = mine[table]
        read = [path for some in paths[transform.source].values() for path in some]
        if not read:
            return None
        try:
            rows = read_files(self.spark, transform.source, read, scope=scope)
            given: list[object] = [within(rows, transform.source.time, bounds(self.spark, low=low, high=high))]
            given += [self._small_rows(table, paths[table], first, last, scope) for table in transform.also_reads]
            if transform.coded:
                given.append(distinct_texts(read, transform.coded))
            if transform.lookback:
                given.append(bounds(self.spark, start=start, end=end))
            return use(transform.build(*given, scope=scope))
        except ObjectStorageError:
            raise
        except (*SPARK_ERRORS, OSError, pa.ArrowException) as error:
            if not self.go_on():
                raise StoppedError from None
            if sum(self.landing.quarantine_damaged(table, its) for table, by in paths.items() for its in by.values()):
                raise _LandingChangedError from None
            folder = str(self.landing.root / transform.source.name)
            names = ", ".join(it.job.cluster for it, _ in parts)
            what = f"{transform.rollup.name} of cluster {names} could not be computed from {folder}"
            raise job_failure(error, what, folder) from None

    def _small_rows(
        self, table: Table, paths: Mapping[str, Sequence[Place]], first: int, last: int, scope: Sequence[str]
    ) -> pa.Table:
        """The rows of a small table; several transforms in turn ask for the same ones."""
        asked = table, tuple(path for some in paths.values() for path in some), first, last
        if asked not in self.small:
            self.small = {asked: small_rows(table, paths, first, last, scope)}
        return self.small[asked]


def _portions(staged: Sequence[_StagedCommit]) -> list[list[int]]:
    """Hours that are computed together: those of one plan, or of a group, which is small."""
    if len(staged) == 1:
        return staged[0].plan.portions
    return list(runs(hour for it in staged for portion in it.plan.portions for hour in portion))


def _in_hours(windows: Mapping[int, MinuteRange], hours: Iterable[int]) -> dict[int, MinuteRange]:
    return {hour: windows[hour] for hour in hours if hour in windows}


def _ranges(windows: Mapping[int, MinuteRange]) -> list[MinuteRange]:
    """One range for each run of hours."""
    return [covering_range(windows, run) for run in runs(windows)]


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

"""Compaction: landing files of completed days with Spark, then hour files of the rollups."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.clock import Clock
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, ObjectStorageError, Place
from ackscope.tables import MINUTES, Table
from pipeline.frames import between, read_files
from pipeline.hours import HOUR, date_of, first_hour
from pipeline.jobs import SessionFactory, generation
from pipeline.progress import NoProgress, Progress
from pipeline.session import SPARK_ERRORS, cause
from pipeline.stop import Stop
from pipeline.storage.compaction import (
    CompactionPlan,
    compaction_lock,
    discard,
    finish,
    output_count,
    scan_partition,
    swap_in,
    was_interrupted,
)
from pipeline.storage.landing import Landing, Partition, require_folder
from pipeline.storage.object_compaction import groups, is_untidy, merge, switch, tidy
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import cluster_watermark

log = get_logger(__name__)

# A query for some hours skips the other row groups.
_ROW_GROUP_BYTES = 32 * 2**20


@dataclass(slots=True)
class CompactSummary:
    """What one `compact` did, or would do.

    Attributes:
        dry_run: nothing was changed.
        folders: landing folders that were compacted.
        files_before, files_after: their landing files.
        bytes_before, bytes_after: size of these.
        rows: rows of these.
        behind: landing files left for later, because they may not be rolled up yet.
        finished: folders in which an earlier compaction had been interrupted.
        rollup_days: days of rollup tables whose hour files became one.
        seconds: total time, including Java's start.
    """

    dry_run: bool = False
    folders: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    rows: int = 0
    behind: int = 0
    finished: int = 0
    rollup_days: int = 0
    seconds: float = 0.0


class Compactor:
    """One `compact` over a landing folder and its rollups.

    Args:
        landing: the landing folder; it may not exist.
        rollups: its rollup folder.
        session: starts Spark, only if landing files are to be merged.
        clock: decides which days are completed.
        cluster: limit to this cluster; None is all.
        after: seconds after its end at which a day counts as completed.
        stop: checked between folders.
        progress: shown to the user.
        delta: publish Delta tables, too.
    """

    def __init__(
        self,
        landing: Place,
        rollups: Place,
        session: SessionFactory,
        clock: Clock,
        cluster: str | None = None,
        after: float = 3600.0,
        stop: Stop | None = None,
        progress: Progress | None = None,
        *,
        delta: bool = True,
    ) -> None:
        require_folder(landing)
        self._stop, self._progress = stop or Stop(), progress or NoProgress()
        self._landing = Landing(landing, clock)
        self._rollups = Rollups(rollups, go_on=self._stop.go_on, delta=delta)
        self._session, self._clock, self._cluster, self._after = session, clock, cluster, after
        self.summary = CompactSummary()

    def run(self, *, dry_run: bool = False) -> CompactSummary:
        """Compact everything that is due.

        Raises:
            AckscopeError: a folder, a file, Java or Spark cannot be used; completed folders stay compacted.
            StoppedError: a stop was requested; likewise.
        """
        start = self._clock.now()
        self.summary.dry_run = dry_run
        with ExitStack() as stack:
            root = self._landing.root
            if not dry_run and root.is_dir():
                stack.enter_context(compaction_lock(root, self._stop.go_on))
                self._finish()
            plans = list(self._plans())
            self._progress.expect(len(plans))
            if dry_run:
                self._count(plans)
            elif plans:
                # In a bucket, Arrow merges: Spark could not write there without Hadoop's connectors.
                spark = None if isinstance(root, ObjectPath) else stack.enter_context(self._session())
                for plan in plans:
                    self._stop.check()
                    if spark is None:
                        self._merge_objects(plan)
                    else:
                        self._merge_files(spark, plan)
                    self._progress.done(1)
        self._compact_rollups(dry_run=dry_run)
        self.summary.seconds = round(self._clock.now().since(start), 3)
        return self.summary

    @property
    def _root(self) -> Path:
        """The landing folder, which is on a disk: else there are no plans."""
        return Path(str(self._landing.root))

    def _partitions(self) -> Iterator[Partition]:
        for partition in self._landing.partitions():
            if self._cluster in {None, partition.cluster}:
                yield partition

    def _closed(self, day: date) -> bool:
        return (first_hour(day) + 24) * HOUR + self._after <= self._clock.now().wall

    def _finish(self) -> None:
        root, now = self._landing.root, self._clock.now().wall
        for partition in self._partitions():
            if isinstance(root, ObjectPath):
                if was_unfinished := is_untidy(root, partition, now):
                    with self._rollups.writer_lock(partition.cluster):
                        tidy(root, partition, now)
            elif was_unfinished := was_interrupted(root, partition):
                with self._rollups.writer_lock(partition.cluster):
                    finish(root, partition)
            if was_unfinished:
                log.info("interrupted compaction completed", folder=str(partition.folder))
                self.summary.finished += 1

    def _plans(self) -> Iterator[CompactionPlan]:
        for partition in self._partitions():
            self._stop.check()
            if self._closed(partition.day):
                until = cluster_watermark(self._rollups.root, generation(), partition.cluster)
                found = scan_partition(self._landing, partition, until)
                self.summary.behind += found.behind
                if found.plan is not None:
                    yield found.plan

    def _count(self, plans: list[CompactionPlan]) -> None:
        for plan in plans:
            self.summary.folders += 1
            self.summary.files_before += len(plan.sources)
            self.summary.bytes_before += plan.bytes
            self.summary.rows += plan.rows
            is_remote = isinstance(self._landing.root, ObjectPath)
            self.summary.files_after += len(groups(plan)) if is_remote else output_count(plan)

    def _merge_files(self, spark: SparkSession, plan: CompactionPlan) -> None:
        root = self._root
        try:
            written = self._write(spark, plan)
            if written is None:
                return
            with self._rollups.writer_lock(plan.partition.cluster):
                size = swap_in(root, plan, written)
        finally:
            discard(root, plan)
        self._add(plan, len(written), size)

    def _merge_objects(self, plan: CompactionPlan) -> None:
        root, table = self._landing.root, plan.partition.table
        if not isinstance(root, ObjectPath):
            raise TypeError(root)
        try:
            sizes = merge(root, plan, self._stop.check)
        except ObjectStorageError:
            raise
        except (pa.ArrowException, OSError) as error:
            if not self._landing.quarantine_damaged(table, plan.sources):
                raise DataError(
                    f"{root / plan.partition.folder}: cannot be compacted ({error}); its files are unchanged"
                ) from None
            return
        with self._rollups.writer_lock(plan.partition.cluster):
            is_done = switch(root, plan, frozenset(sizes))
        self._add(plan, len(sizes), sum(sizes.values()) if is_done else None)

    def _add(self, plan: CompactionPlan, files: int, size: int | None) -> None:
        """Count a compaction; without a size it was not done."""
        if size is None:
            log.info("folder changed meanwhile, left for the next compaction", folder=str(plan.partition.folder))
            return
        self.summary.folders += 1
        self.summary.files_before += len(plan.sources)
        self.summary.files_after += files
        self.summary.bytes_before += plan.bytes
        self.summary.bytes_after += size
        self.summary.rows += plan.rows

    def _write(self, spark: SparkSession, plan: CompactionPlan) -> list[Path] | None:
        """The new files, which do not count yet; None if a source was damaged, and quarantined."""
        table, day = plan.partition.table, first_hour(plan.partition.day)
        hidden = plan.hidden(self._root)
        order = [table.time, *(name for name in table.key if name != table.time)]
        try:
            rows = read_files(spark, table, list(plan.sources)).where(
                between(table.time, (day - 24) * HOUR, (day + 48) * HOUR)
            )
            number = output_count(plan)
            rows = rows.coalesce(1) if number == 1 else rows.repartitionByRange(number, table.time)
            rows.sortWithinPartitions(*order).write.mode("overwrite").option(
                "parquet.block.size", _ROW_GROUP_BYTES
            ).parquet(f"file:{hidden}")
        except SPARK_ERRORS as error:
            self._stop.check()
            if self._landing.quarantine_damaged(table, plan.sources):
                return None
            raise DataError(f"{hidden.parent}: cannot be compacted ({cause(error)}); its files are unchanged") from None
        return sorted(hidden.glob("part-*.parquet"))

    def _compact_rollups(self, *, dry_run: bool) -> None:
        for cluster in self._rollups.clusters():
            if self._cluster not in {None, cluster}:
                continue
            days = {
                day: tables for day, tables in _uncompacted_days(self._rollups, cluster).items() if self._closed(day)
            }
            self._progress.expect(0 if dry_run else len(days))
            for day, tables in sorted(days.items()):
                self._stop.check()
                self.summary.rollup_days += len(tables)
                if not dry_run:
                    with self._rollups.writer_lock(cluster):
                        transaction = self._rollups.transaction(cluster)
                        for table in tables:
                            transaction.compact_day(table, day)
                        transaction.commit()
                    self._progress.done(1)
        if not dry_run:
            self._rollups.vacuum()


def _uncompacted_days(rollups: Rollups, cluster: str) -> dict[date, list[Table]]:
    """Dates for which tables of minutes have several files, with these tables."""
    found: dict[date, list[Table]] = defaultdict(list)
    manifest = rollups.manifest(cluster)
    for name, table in MINUTES.items():
        days = Counter(date_of(it.start) for it in manifest.files_for(name))
        for day, files in days.items():
            if files > 1:
                found[day].append(table)
    return found

"""Downsample minutes to hours and hours to days, only where the source rows changed.

An hour stores the digest of its source rows, and the manifest has the digest of the current ones. After a kill the rest
is done next time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.manifest import DataFile, Manifest
from ackscope.tables import DAYS, HOURS, MINUTES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.executor_writes import write_each
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.side_by_side import side_by_side, together
from pipeline.stop import StoppedError
from pipeline.storage.data_file_writer import FilePlan, WrittenFile, hour_ranges, read_part, write_file
from pipeline.storage.rollups import Rollups
from pipeline.storage.row_order import sort_by_time
from pipeline.storage.store import FileStore
from pipeline.storage.transaction import Transaction
from pipeline.transforms.merging import downsampled

# Rows read for a group of clusters.
MAX_ROWS = 4_000_000

# Rows read before a commit, about: some seconds of work.
_ROWS_PER_CORE = 8_000_000


@dataclass(frozen=True, slots=True)
class DownsampleStep:
    """A source table, its target table, and the hours covered by one target row."""

    source: Table
    target: Table
    span: int


_HOUR_STEPS = tuple(DownsampleStep(table, HOURS[name], 1) for name, table in MINUTES.items())
_DAY_STEPS = tuple(DownsampleStep(HOURS[name], DAYS[name], 24) for name in MINUTES)
# All steps in order.
STEPS = (*_HOUR_STEPS, *_DAY_STEPS)


@dataclass(frozen=True, slots=True)
class Stale:
    """The difference between a target table and its source; by hour, or first hour of the day.

    Attributes:
        rebuild: hours or days to downsample, with the digest of their source.
        remove: hours or days whose source rows are gone, but not by expiry.
    """

    rebuild: Mapping[int, str]
    remove: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Downsampling:
    """One file of hours or days that is to be written. The driver or an executor does it.

    Attributes:
        plan: of the file.
        store: where it and its source are.
        rebuild: as in `Stale`, of this file.
        sources: files of the source table that have these hours or days.
        rows: of the source, about.
    """

    step: DownsampleStep
    plan: FilePlan
    store: FileStore
    rebuild: Mapping[int, str]
    sources: tuple[DataFile, ...]
    rows: int

    def __call__(self) -> WrittenFile:
        """Write the file; it has the rows of one hour or day of the source in memory at a time.

        Raises:
            DataError: a file cannot be read or written, or a sum is too large.
        """
        target = self.step.target
        try:
            found = [downsampled(rows, self.step.source, target) for rows in self._source_rows()]
        except pa.ArrowException as error:
            raise DataError(f"{target.name} of cluster {self.plan.cluster} could not be downsampled: {error}") from None
        rows = pa.concat_tables([arrow_schema(target).empty_table(), *found])
        return write_file(self.store, self.plan, sort_by_time(target, rows))

    def _source_rows(self) -> Iterator[pa.Table]:
        for start in self.rebuild:
            for it in self.sources:
                if str(start) in it.parts:
                    yield read_part(self.store, self.step.source, it, start, start + self.step.span)


def find_stale(manifest: Manifest, step: DownsampleStep) -> Stale:
    """Compare the current source with the source of the target rows; expired source rows are not a difference."""
    digests, source_digests = _digests(manifest, step.source), _source_digests(manifest, step.target)
    rebuild = {start: text for start, text in digests.items() if source_digests.get(start) != text}
    return Stale(rebuild, frozenset(source_digests.keys() - digests.keys()))


def refresh(
    spark: SparkSession,
    rollups: Rollups,
    clusters: Iterable[str],
    go_on: Callable[[], bool] = lambda: True,
    *,
    at_once: int | None = None,
) -> None:
    """Bring the hours and days of clusters up to date with their minutes.

    Small clusters are computed together, and groups of clusters side by side, at most `at_once`. It computes without
    the writer lock and takes the lock to commit; rows that changed meanwhile are left for the next time. It ends early
    if `go_on` returns False.

    Raises:
        DataError: Spark failed, or a file cannot be read or written.
    """

    def of_group(names: Sequence[str]) -> None:
        for steps in (_HOUR_STEPS, _DAY_STEPS):
            _refresh_group(spark, rollups, names, steps, go_on)

    names = list(clusters)
    # One cluster is a group, whatever its size.
    sizes = {it: _stale_rows(rollups.manifest(it)) if len(names) > 1 else 0 for it in names}
    side_by_side(spark, together(sizes, MAX_ROWS), of_group, at_once)


def _stale_rows(manifest: Manifest) -> int:
    return sum(_source_rows(manifest, step, find_stale(manifest, step).rebuild) for step in _HOUR_STEPS)


def _refresh_group(
    spark: SparkSession,
    rollups: Rollups,
    names: Sequence[str],
    steps: Sequence[DownsampleStep],
    go_on: Callable[[], bool],
) -> None:
    """Write the files of all these clusters and tables together, in a few jobs if there are many."""
    files: list[_Downsampling] = []
    for cluster in names:
        _remove(rollups, cluster, steps)
        transaction = rollups.transaction(cluster)
        files += [it for step in steps for it in _downsamplings(transaction, step)]
    # Oldest first, so that what is left after a kill has no gaps.
    for some in _jobs(sorted(files, key=lambda it: it.plan.slot.start), spark.sparkContext.defaultParallelism):
        if not go_on():
            return
        try:
            written = write_each(spark, some, go_on)
        except StoppedError:
            return
        except SPARK_ERRORS as error:
            if not go_on():
                return
            what = f"{some[0].step.target.name} of cluster {', '.join(names)} could not be downsampled"
            raise job_failure(error, what, str(rollups.root)) from None
        for cluster in names:
            mine = [(it, file) for it, file in zip(some, written, strict=True) if it.plan.cluster == cluster]
            _commit(rollups, cluster, mine)


def _downsamplings(transaction: Transaction, step: DownsampleStep) -> Iterator[_Downsampling]:
    """The files of a step that have stale hours or days."""
    manifest = transaction.manifest
    rebuild = find_stale(manifest, step).rebuild
    for plan in transaction.plan(step.target, hour_ranges(_hours(rebuild, step))):
        mine = {hour: rebuild[hour] for hour in plan.hours if hour in rebuild}
        sources = manifest.files_for(step.source.name, min(mine), max(mine) + step.span)
        yield _Downsampling(step, plan, transaction.store, mine, sources, _source_rows(manifest, step, mine))


def _jobs(files: Iterable[_Downsampling], cores: int) -> Iterator[list[_Downsampling]]:
    """Files that are written together and then committed, so that a kill costs little."""
    some: list[_Downsampling] = []
    rows = 0
    for it in files:
        some.append(it)
        rows += it.rows
        if rows >= _ROWS_PER_CORE * cores:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _remove(rollups: Rollups, cluster: str, steps: Sequence[DownsampleStep]) -> None:
    """Remove hours or days whose source rows are gone."""
    manifest = rollups.manifest(cluster)
    if not any(find_stale(manifest, step).remove for step in steps):
        return
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        for step in steps:
            gone = find_stale(transaction.manifest, step).remove
            transaction.replace_hours(step.target, _hours(gone, step), arrow_schema(step.target).empty_table())
        transaction.commit()


def _commit(rollups: Rollups, cluster: str, files: Sequence[tuple[_Downsampling, WrittenFile]]) -> None:
    """Commit the files whose slot is as it was, and whose source still exists.

    A source that changed meanwhile is no reason to wait: the file says what it was made of, so it is made again. A day
    whose latest hour grows all the time would otherwise never be committed.
    """
    if not files:
        return
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        for it, written in files:
            digests = _digests(transaction.manifest, it.step.source)
            if it.rebuild.keys() <= digests.keys() and transaction.is_current(it.plan):
                # Hours without a digest of their own forget the one that they had.
                transaction.stage(it.plan, written, {**dict.fromkeys(it.plan.hours), **it.rebuild})
        transaction.commit()


def _hours(starts: Iterable[int], step: DownsampleStep) -> list[int]:
    return [start + hour for start in sorted(starts) for hour in range(step.span)]


def _source_rows(manifest: Manifest, step: DownsampleStep, starts: Iterable[int]) -> int:
    rows = {int(start): it.rows // len(it.parts) for it in manifest.files_for(step.source.name) for start in it.parts}
    return sum(rows[start] for start in starts)


def _digests(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.parts.items()}


def _source_digests(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.made_of.items()}

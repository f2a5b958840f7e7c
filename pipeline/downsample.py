"""Downsample minutes to hours and hours to days, only where the source rows changed.

An hour stores the digest of its source rows, and the manifest has the digest of the current ones. After a kill the rest
is done next time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from ackscope.manifest import Manifest
from ackscope.tables import DAYS, HOURS, MINUTES, Table
from ackscope.tables.arrow import arrow_schema
from pipeline.executor_writes import is_collected, write_files
from pipeline.frames import read_rollups
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.storage.data_file_writer import FilePlan, WrittenFile, hour_ranges
from pipeline.storage.rollups import Rollups
from pipeline.storage.transaction import Transaction
from pipeline.transforms.merging import downsampled

# Rows read by one Spark job; at least one hour or day.
MAX_ROWS = 4_000_000

# Rows that become one, at least, where it matters: in a table with many rows, most objects have most minutes.
_LEAST_MERGED = 10

# Downsampled rows that are committed together.
_MAX_PENDING_ROWS = 1_000_000


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
class _Downsampled:
    """Hours or days of one step that are computed and not committed.

    Attributes:
        rows: their rows; None if executors have written them.
        files: what executors have written, each with its plan.
        more: whether more of the step follows.
    """

    step: DownsampleStep
    stale_units: Stale
    rows: pa.Table | None
    files: Sequence[tuple[FilePlan, WrittenFile]] = ()
    more: bool = False

    @property
    def pending_rows(self) -> int:
        return 0 if self.rows is None else self.rows.num_rows


def find_stale(manifest: Manifest, step: DownsampleStep) -> Stale:
    """Compare the current source with the source of the target rows; expired source rows are not a difference."""
    digests, source_digests = _digests(manifest, step.source), _source_digests(manifest, step.target)
    rebuild = {start: text for start, text in digests.items() if source_digests.get(start) != text}
    return Stale(rebuild, frozenset(source_digests.keys() - digests.keys()))


def refresh(spark: SparkSession, rollups: Rollups, cluster: str, go_on: Callable[[], bool] = lambda: True) -> None:
    """Bring the hours and days of a cluster up to date with its minutes.

    It computes without the writer lock and takes the lock to commit; rows that changed meanwhile are left for the next
    time. It ends early if `go_on` returns False.

    Raises:
        DataError: Spark failed, or a file cannot be read or written.
    """
    for steps in (_HOUR_STEPS, _DAY_STEPS):
        batch: list[_Downsampled] = []
        for step in steps:
            try:
                for it in _downsample(spark, rollups, cluster, step):
                    batch.append(it)
                    # The next files of the step may replace these, so they are planned after their commit.
                    if (it.files and it.more) or sum(it.pending_rows for it in batch) > _MAX_PENDING_ROWS:
                        _commit(rollups, cluster, batch)
                        batch = []
                    if not go_on():
                        return
            except SPARK_ERRORS as error:
                if not go_on():
                    return
                what = f"{step.target.name} of cluster {cluster} could not be downsampled"
                raise job_failure(error, what, str(rollups.root)) from None
        if batch:
            _commit(rollups, cluster, batch)


def _downsample(spark: SparkSession, rollups: Rollups, cluster: str, step: DownsampleStep) -> Iterator[_Downsampled]:
    manifest = rollups.manifest(cluster)
    stale_units = find_stale(manifest, step)
    if stale_units.remove:
        yield _Downsampled(step, Stale({}, stale_units.remove), arrow_schema(step.target).empty_table())
    portions = list(_portions(manifest, step, stale_units.rebuild))
    for starts in portions:
        rows = read_rollups(spark, rollups.root, manifest, step.source, starts[0], starts[-1] + step.span)
        rebuild = {start: stale_units.rebuild[start] for start in starts}
        frame = downsampled(rows, step.source, step.target)
        if is_collected(spark, _source_rows(manifest, step, starts) / _LEAST_MERGED):
            yield _Downsampled(step, Stale(rebuild, frozenset()), frame.toArrow())
        else:
            transaction = rollups.transaction(cluster)
            plans = transaction.plan(step.target, hour_ranges(_hours(starts, step)))
            files = list(zip(plans, write_files(frame, plans, transaction.store), strict=True))
            yield _Downsampled(step, Stale(rebuild, frozenset()), None, files, more=starts is not portions[-1])


def _commit(rollups: Rollups, cluster: str, batch: list[_Downsampled]) -> None:
    """Commit what is still right."""
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        for it in batch:
            digests, source_digests = (
                _digests(transaction.manifest, it.step.source),
                _source_digests(transaction.manifest, it.step.target),
            )
            if it.rows is None:
                _stage_files(transaction, it, digests)
                continue
            # Rows whose source is still the same.
            rebuild = {start: text for start, text in it.stale_units.rebuild.items() if digests.get(start) == text}
            remove = {start for start in it.stale_units.remove if start in source_digests and start not in digests}
            transaction.replace_hours(it.step.target, _hours(remove | rebuild.keys(), it.step), it.rows, rebuild)
        transaction.commit()


def _stage_files(transaction: Transaction, it: _Downsampled, digests: Mapping[int, str]) -> None:
    """Stage the written files whose slot is as it was, and whose source still exists.

    A source that changed meanwhile is no reason to wait: the file says what it was made of, so it is made again. A day
    whose latest hour grows all the time would otherwise never be committed.
    """
    for plan, written in it.files:
        rebuilt = {hour: it.stale_units.rebuild[hour] for hour in plan.hours if hour in it.stale_units.rebuild}
        if rebuilt.keys() <= digests.keys() and transaction.is_current(plan):
            # Hours without a digest of their own forget the one that they had.
            transaction.stage(plan, written, dict.fromkeys(plan.hours) | rebuilt)


def _hours(starts: Iterable[int], step: DownsampleStep) -> list[int]:
    return [start + hour for start in sorted(starts) for hour in range(step.span)]


def _source_rows(manifest: Manifest, step: DownsampleStep, starts: Iterable[int]) -> int:
    rows = _rows_by_start(manifest, step)
    return sum(rows[start] for start in starts)


def _rows_by_start(manifest: Manifest, step: DownsampleStep) -> dict[int, int]:
    return {int(start): it.rows // len(it.parts) for it in manifest.files_for(step.source.name) for start in it.parts}


def _portions(manifest: Manifest, step: DownsampleStep, rebuild: Mapping[int, str]) -> Iterator[list[int]]:
    """Consecutive hours or days with a bounded number of rows."""
    rows = _rows_by_start(manifest, step)
    portion: list[int] = []
    total = 0
    for start in sorted(rebuild):
        if portion and (start - portion[-1] > step.span or total + rows[start] > MAX_ROWS):
            yield portion
            portion, total = [], 0
        portion.append(start)
        total += rows[start]
    if portion:
        yield portion


def _digests(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.parts.items()}


def _source_digests(manifest: Manifest, table: Table) -> dict[int, str]:
    return {int(start): text for it in manifest.files_for(table.name) for start, text in it.made_of.items()}

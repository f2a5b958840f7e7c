"""Downsample minutes to hours and hours to days, only where the source rows changed.

An hour stores the digest of its source rows, and the manifest has the digest of the current ones. After a kill the rest
is done next time.
"""

from collections import defaultdict
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
from pipeline.side_by_side import rows_of, scope_of, side_by_side, together
from pipeline.storage.data_file_writer import FilePlan, WrittenFile, hour_ranges
from pipeline.storage.rollups import Rollups
from pipeline.storage.store import store_of
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


@dataclass(frozen=True, slots=True)
class _Portion:
    """Consecutive stale hours or days of one cluster.

    Attributes:
        manifest: of the cluster.
        rebuild: as in `Stale`.
        rows: rows of the source.
        more: whether more of the step follows.
    """

    manifest: Manifest
    rebuild: Mapping[int, str]
    rows: int
    more: bool


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
        _refresh_group(spark, rollups, names, go_on)

    names = list(clusters)
    # One cluster is a group, whatever its size.
    sizes = {it: _stale_rows(rollups.manifest(it)) if len(names) > 1 else 0 for it in names}
    side_by_side(spark, together(sizes, MAX_ROWS), of_group, at_once)


def _stale_rows(manifest: Manifest) -> int:
    return sum(_source_rows(manifest, step, find_stale(manifest, step).rebuild) for step in _HOUR_STEPS)


def _refresh_group(spark: SparkSession, rollups: Rollups, names: Sequence[str], go_on: Callable[[], bool]) -> None:
    for steps in (_HOUR_STEPS, _DAY_STEPS):
        pending: dict[str, list[_Downsampled]] = defaultdict(list)
        for step in steps:
            try:
                for cluster, it in _downsample(spark, rollups, names, step):
                    pending[cluster].append(it)
                    # The next files of the step may replace these, so they are planned after their commit.
                    if it.files and it.more:
                        _commit(rollups, cluster, pending.pop(cluster))
                    if sum(it.pending_rows for batch in pending.values() for it in batch) > _MAX_PENDING_ROWS:
                        _commit_all(rollups, pending)
                    if not go_on():
                        return
            except SPARK_ERRORS as error:
                if not go_on():
                    return
                what = f"{step.target.name} of cluster {', '.join(names)} could not be downsampled"
                raise job_failure(error, what, str(rollups.root)) from None
        _commit_all(rollups, pending)


def _downsample(
    spark: SparkSession, rollups: Rollups, clusters: Sequence[str], step: DownsampleStep
) -> Iterator[tuple[str, _Downsampled]]:
    """What each cluster gets; those that have the same portion of stale hours are computed by one query."""
    units: dict[tuple[int, int], list[_Portion]] = defaultdict(list)
    for cluster in clusters:
        manifest = rollups.manifest(cluster)
        stale_units = find_stale(manifest, step)
        if stale_units.remove:
            yield cluster, _Downsampled(step, Stale({}, stale_units.remove), arrow_schema(step.target).empty_table())
        portions = list(_portions(manifest, step, stale_units.rebuild))
        for starts in portions:
            rebuild = {start: stale_units.rebuild[start] for start in starts}
            rows = _source_rows(manifest, step, starts)
            units[starts[0], starts[-1]].append(_Portion(manifest, rebuild, rows, more=starts is not portions[-1]))
    for (first, last), found in sorted(units.items()):
        yield from _computed(spark, rollups, step, (first, last + step.span), found)


def _computed(
    spark: SparkSession, rollups: Rollups, step: DownsampleStep, hours: tuple[int, int], group: Sequence[_Portion]
) -> Iterator[tuple[str, _Downsampled]]:
    """Compute one portion of each cluster of a group with one query."""
    scope = scope_of(group)
    source = read_rollups(spark, rollups.root, [it.manifest for it in group], step.source, *hours, scope=scope)
    frame = downsampled(source, step.source, step.target, scope)
    if is_collected(spark, sum(it.rows for it in group) / _LEAST_MERGED):
        rows = frame.toArrow()
        for it in group:
            cluster = it.manifest.cluster
            yield cluster, _Downsampled(step, Stale(it.rebuild, frozenset()), rows_of(rows, cluster))
        return
    plans = [
        (it, plan)
        for it in group
        for plan in rollups.transaction(it.manifest.cluster).plan(step.target, hour_ranges(_hours(it.rebuild, step)))
    ]
    written = write_files(frame, [plan for _, plan in plans], store_of(rollups.root), scope)
    for it in group:
        files = [(plan, file) for (owner, plan), file in zip(plans, written, strict=True) if owner is it]
        yield it.manifest.cluster, _Downsampled(step, Stale(it.rebuild, frozenset()), None, files, more=it.more)


def _commit_all(rollups: Rollups, pending: dict[str, list[_Downsampled]]) -> None:
    while pending:
        cluster = next(iter(pending))
        _commit(rollups, cluster, pending.pop(cluster))


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

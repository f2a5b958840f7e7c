"""Bring the analyses of a cluster up to date: episodes, baselines, changes and answers.

Each step is committed by itself and stores what it was computed from: after a kill the rest is done next time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ackscope.log import get_logger
from ackscope.manifest import Manifest
from ackscope.tables import BASELINES, CHANGES, EPISODES, Table
from pipeline.analysis import analysis_state, baselines, changes
from pipeline.analysis.analysis_state import AnalysisState
from pipeline.analysis.episodes import episodes_of
from pipeline.analysis.report_filter import select_reportable
from pipeline.answers import answers_file
from pipeline.executor_writes import is_collected, write_files
from pipeline.hours import HOUR
from pipeline.session import SPARK_ERRORS, job_failure
from pipeline.storage.data_file_writer import hour_ranges
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

log = get_logger(__name__)

# Rows this far ahead of the clock are still accepted.
_MAX_AHEAD_HOURS = 24


@dataclass(frozen=True, slots=True)
class DueWork:
    """The work that is due.

    Attributes:
        blocks: first hours of the blocks of minutes to search for shifts.
        hours: hours of the day whose bands are to be computed, 0 to 23.
    """

    blocks: list[int]
    hours: list[int]


def due(rollups: Rollups, cluster: str, now: float) -> DueWork:
    """What `refresh` would do.

    Raises:
        DataError: the manifest cannot be read.
    """
    manifest = rollups.manifest(cluster)
    return _Pending(manifest, _load_state(rollups, manifest), now).due()


def refresh(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    cluster: str,
    now: float,
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Do the work that is due; hours and days must be up to date.

    Call it without the writer lock: it takes the lock to commit. It ends early if `go_on` returns False.

    Args:
        spark: the session.
        landing: holds the finding events.
        rollups: analysed and written.
        cluster: its name.
        now: seconds since 1970.
        go_on: called between the steps.

    Raises:
        DataError: Spark failed, or a file cannot be read or written.
    """
    try:
        _commit(rollups, cluster, EPISODES, episodes_of(spark, landing, rollups, cluster, now))
        for step in (bands, shifts):
            if go_on():
                step(spark, rollups, cluster, now, go_on)
        if go_on():
            answers_file.write(spark, rollups.root, cluster, now)
    except SPARK_ERRORS as error:
        if go_on():
            raise job_failure(error, f"the analyses of cluster {cluster} failed", str(rollups.root)) from None


@dataclass(frozen=True, slots=True)
class _Pending:
    """A manifest compared with the stored state."""

    manifest: Manifest
    state: AnalysisState
    now: float

    @property
    def minutes(self) -> dict[int, str]:
        """Hours that have minutes, each with a digest; hours too far in the future (wrong clock) are left out."""
        latest = int(self.now // HOUR) + _MAX_AHEAD_HOURS
        return {hour: it for hour, it in analysis_state.hours_now(self.manifest).items() if hour <= latest}

    @property
    def hours(self) -> dict[int, str]:
        """All hours that bands can be computed from. If the minutes of a date expired, its hours count as unchanged."""
        minutes = self.minutes
        days = {hour // 24 for hour in minutes}
        old = (
            hour
            for hour in analysis_state.hours_with_rollups(self.manifest)
            if hour // 24 not in days and hour <= self.now // HOUR
        )
        return dict.fromkeys(old, "kept") | minutes

    def due(self) -> DueWork:
        minutes = self.minutes
        blocks = changes.blocks_for(analysis_state.changed(self.state.shifted, minutes), set(minutes))
        hours = self.hours
        oldest = max(hours, default=0) - baselines.WEEKS * 7 * 24
        fresh = {hour for hour in analysis_state.changed(self.state.banded, hours) if hour > oldest}
        new = {hour % 24 for hour in fresh if hours[hour] != "kept" or hour not in self.state.banded}
        return DueWork(blocks, sorted(new))


def _load_state(rollups: Rollups, manifest: Manifest) -> AnalysisState:
    """The stored state; all bands are due if there are none."""
    known = analysis_state.read(rollups.root, manifest.cluster)
    return known if manifest.files_for(BASELINES.name) else replace(known, banded={})


def bands(
    spark: SparkSession, rollups: Rollups, cluster: str, now: float, go_on: Callable[[], bool] = lambda: True
) -> None:
    """Compute the bands that are due."""
    manifest = rollups.manifest(cluster)
    work = _Pending(manifest, _load_state(rollups, manifest), now)
    hours = work.hours
    for portion in baselines.portions(manifest, work.due().hours):
        if not go_on():
            return
        rows = baselines.build(spark, rollups.root, manifest, portion, max(hours))
        of_week = sorted(24 * day + hour for hour in portion for day in range(7))
        if is_collected(spark, 0):
            _commit(rollups, cluster, BASELINES, rows.toArrow(), of_week)
        elif not _write_and_commit(rollups, cluster, rows, of_week):
            return
        seen = {hour: digest for hour, digest in hours.items() if hour % 24 in portion}
        _save_state(rollups, cluster, banded=seen)


def shifts(
    spark: SparkSession, rollups: Rollups, cluster: str, now: float, go_on: Callable[[], bool] = lambda: True
) -> None:
    """Search the due blocks for shifts, and publish the reportable ones."""
    manifest = rollups.manifest(cluster)
    work = _Pending(manifest, _load_state(rollups, manifest), now)
    minutes, blocks = work.minutes, work.due().blocks
    candidates = work.state.candidates
    for portion in changes.portions(manifest, blocks):
        if not go_on():
            return
        candidates = changes.replace_blocks(candidates, portion, changes.search(spark, rollups.root, manifest, portion))
        # An hour is done once all blocks that depend on it were searched; the latest block may not exist yet.
        seen = {hour: it for hour, it in minutes.items() if changes.blocks_for({hour}, set(minutes))[-1] <= portion[-1]}
        _save_state(rollups, cluster, candidates=candidates, shifted=seen)
    _commit(rollups, cluster, CHANGES, select_reportable(candidates))


def _write_and_commit(rollups: Rollups, cluster: str, rows: DataFrame, hours: list[int]) -> bool:
    """Let executors write the bands of these hours of the week, and commit them.

    False, and nothing is committed, if another job committed bands meanwhile; the rest is done next time.
    """
    before = rollups.transaction(cluster)
    plans = before.plan(BASELINES, hour_ranges(hours))
    written = write_files(rows, plans, before.store)
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        for plan, it in zip(plans, written, strict=True):
            if not (transaction.is_current(plan) and transaction.stage(plan, it)):
                return False
        transaction.commit()
    return True


def _save_state(
    rollups: Rollups,
    cluster: str,
    candidates: pa.Table | None = None,
    shifted: Mapping[int, str] | None = None,
    banded: Mapping[int, str] | None = None,
) -> None:
    known = analysis_state.with_hours(analysis_state.read(rollups.root, cluster), shifted=shifted, banded=banded)
    analysis_state.write(rollups.root, cluster, known if candidates is None else replace(known, candidates=candidates))


def _commit(rollups: Rollups, cluster: str, table: Table, rows: pa.Table, hours: list[int] | None = None) -> None:
    """Commit the rows of some hours of an analysis, or of all of it."""
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        if hours is None:
            transaction.replace_table(table, rows)
        else:
            for hour in hours:
                transaction.replace_hours(table, [hour], rows.filter(pc.equal(rows["hour_of_week"], hour)))
        transaction.commit()

"""All analyses of a cluster, made what its rollups say now: what ended, what is usual, what shifted, what to answer.

Each step is committed by itself, and remembers what it was made of: a kill at any moment only means that the rest is
done the next time.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from ackscope.errors import DataError
from ackscope.manifest import Manifest
from ackscope.tables import BASELINES, CHANGES, EPISODES, Table
from pipeline.analysis import baselines, changes, memory
from pipeline.analysis.episodes import episodes_of
from pipeline.analysis.memory import Memory
from pipeline.analysis.telling import told
from pipeline.answers import file
from pipeline.hours import HOUR
from pipeline.session import SPARK_ERRORS, cause
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

log = logging.getLogger(__name__)

_AHEAD = 24
"""Hours that rows may be ahead of the clock without being mistaken."""


@dataclass(frozen=True, slots=True)
class Due:
    """What there is to do.

    Attributes:
        blocks: first hours of the blocks of minutes in which shifts are to be looked for.
        hours: hours of the day whose bands are to be made, 0 to 23.
    """

    blocks: list[int]
    hours: list[int]


def due(rollups: Rollups, cluster: str, now: float) -> Due:
    """What `refresh` would do.

    Raises:
        DataError: the catalog cannot be read.
    """
    manifest = rollups.manifest(cluster)
    return _Refresh(manifest, _memory(rollups, manifest), now).due()


def refresh(
    spark: SparkSession,
    landing: Landing,
    rollups: Rollups,
    cluster: str,
    now: float,
    go_on: Callable[[], bool] = lambda: True,
) -> None:
    """Do what is due; hours and days must have been made of the minutes before.

    Not to be called as the only writer: it takes the rollups as such to commit. It ends early where `go_on` says no.

    Args:
        spark: the session.
        landing: where the events of findings are.
        rollups: what is analysed, and where it goes.
        cluster: its name.
        now: seconds since 1970.
        go_on: asked between the steps.

    Raises:
        DataError: Spark failed, or a file cannot be read or written.
    """
    try:
        _replace(rollups, cluster, EPISODES, episodes_of(spark, landing, rollups, cluster, now))
        for step in (bands, shifts):
            if go_on():
                step(spark, rollups, cluster, now, go_on)
        if go_on():
            file.write(spark, rollups.root, cluster, now)
    except SPARK_ERRORS as error:
        if go_on():
            raise DataError(f"the analyses of cluster {cluster} could not be made: {cause(error)}") from None


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One catalog held against what is remembered of it."""

    manifest: Manifest
    memory: Memory
    now: float

    @property
    def minutes(self) -> dict[int, str]:
        """Hours that have minutes, each with a digest; none of a clock that is far ahead."""
        latest = int(self.now // HOUR) + _AHEAD
        return {hour: it for hour, it in memory.hours_now(self.manifest).items() if hour <= latest}

    @property
    def hours(self) -> dict[int, str]:
        """All hours that bands can be made of; those of days without minutes stay as they are."""
        minutes = self.minutes
        days = {hour // 24 for hour in minutes}
        old = (hour for hour in memory.hours_kept(self.manifest) if hour // 24 not in days and hour <= self.now // HOUR)
        return dict.fromkeys(old, "kept") | minutes

    def due(self) -> Due:
        minutes = self.minutes
        blocks = changes.blocks(memory.changed(self.memory.shifted, minutes), set(minutes))
        hours = self.hours
        oldest = max(hours, default=0) - baselines.WEEKS * 7 * 24
        fresh = {hour for hour in memory.changed(self.memory.banded, hours) if hour > oldest}
        new = {hour % 24 for hour in fresh if hours[hour] != "kept" or hour not in self.memory.banded}
        return Due(blocks, sorted(new))


def _memory(rollups: Rollups, manifest: Manifest) -> Memory:
    """What is remembered; bands are all to be made where the catalog has none."""
    known = memory.read(rollups.root, manifest.cluster)
    return known if manifest.files_for(BASELINES.name) else replace(known, banded={})


def bands(
    spark: SparkSession, rollups: Rollups, cluster: str, now: float, go_on: Callable[[], bool] = lambda: True
) -> None:
    """Make the bands that are due, of hours."""
    manifest = rollups.manifest(cluster)
    work = _Refresh(manifest, _memory(rollups, manifest), now)
    hours = work.hours
    for wanted in baselines.portions(manifest, work.due().hours):
        if not go_on():
            return
        rows = baselines.build(spark, rollups.root, manifest, wanted, max(hours))
        _replace(rollups, cluster, BASELINES, rows, [24 * day + hour for hour in wanted for day in range(7)])
        seen = {hour: digest for hour, digest in hours.items() if hour % 24 in wanted}
        _remember(rollups, cluster, banded=seen)


def shifts(
    spark: SparkSession, rollups: Rollups, cluster: str, now: float, go_on: Callable[[], bool] = lambda: True
) -> None:
    """Look for shifts in the blocks that are due, of minutes, and tell those that are news."""
    manifest = rollups.manifest(cluster)
    work = _Refresh(manifest, _memory(rollups, manifest), now)
    minutes, blocks = work.minutes, work.due().blocks
    candidates = work.memory.candidates
    for wanted in changes.portions(manifest, blocks):
        if not go_on():
            return
        candidates = changes.replaced(candidates, wanted, changes.search(spark, rollups.root, manifest, wanted))
        # An hour counts as seen once all blocks that depend on it were looked through: the latest may not be there yet.
        seen = {hour: it for hour, it in minutes.items() if changes.blocks({hour}, set(minutes))[-1] <= wanted[-1]}
        _remember(rollups, cluster, candidates=candidates, shifted=seen)
    _replace(rollups, cluster, CHANGES, told(candidates))


def _remember(
    rollups: Rollups,
    cluster: str,
    candidates: pa.Table | None = None,
    shifted: Mapping[int, str] | None = None,
    banded: Mapping[int, str] | None = None,
) -> None:
    known = memory.seen(memory.read(rollups.root, cluster), shifted=shifted, banded=banded)
    memory.write(rollups.root, cluster, known if candidates is None else replace(known, candidates=candidates))


def _replace(rollups: Rollups, cluster: str, table: Table, rows: pa.Table, hours: list[int] | None = None) -> None:
    """Commit the rows of some hours of an analysis, or of all of it."""
    with rollups.only_writer():
        change = rollups.change(cluster)
        if hours is None:
            change.replace_all(table, rows)
        else:
            for hour in hours:
                change.replace(table, [hour], rows.filter(pc.equal(rows["hour_of_week"], hour)))
        change.commit()

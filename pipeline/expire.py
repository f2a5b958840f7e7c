"""Retention: raw rows expire first, minutes later, hours much later, days possibly never."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any

from ackscope.clock import Clock
from ackscope.errors import UsageError
from ackscope.manifest import Manifest
from ackscope.object_path import ObjectPath, Place
from ackscope.tables import CHANGES, DAYS, EPISODES, FINDING_EVENTS, HOURS, MINUTES, Table
from pipeline.downsample import DownsampleStep, find_stale
from pipeline.hours import HOUR, date_of, first_hour
from pipeline.jobs import generation
from pipeline.stop import Stop
from pipeline.storage.compaction import finish, is_ingested, was_interrupted
from pipeline.storage.expired import raise_floor
from pipeline.storage.file_stats import FileStats
from pipeline.storage.folder_listing import stamp_of
from pipeline.storage.landing import Landing, Partition, require_folder
from pipeline.storage.layout import hours_per_digest
from pipeline.storage.object_compaction import forget, tidy
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import cluster_watermark

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each grain is retained, in seconds; None is for ever.

    Whole UTC dates expire. Findings and analyses are retained as long as days.

    Raises:
        UsageError: a grain would expire before a finer one, which would create it again.
    """

    raw: float | None = 3 * _DAY
    minutes: float | None = 30 * _DAY
    hours: float | None = 400 * _DAY
    days: float | None = None

    def __post_init__(self) -> None:
        if self.raw is not None and self.raw < _DAY:
            raise UsageError("--raw is less than 1d: late rows would find half of their hour expired; use 1d or more")
        ordered = list(asdict(self).items())
        for (finer, shorter), (coarser, longer) in pairwise(ordered):
            # Unlimited raw rows are left to the exporter, which has its own retention for them.
            if longer is not None and (longer < shorter if shorter is not None else finer != "raw"):
                raise UsageError(
                    f"--{coarser} is shorter than --{finer}: expired rows would be created again; "
                    f"retain {coarser} at least as long"
                )

    def cut(self, grain: str, now: float) -> date | None:
        """The first date that is retained; None if nothing expires."""
        age: float | None = getattr(self, grain)
        return None if age is None or age >= now else date_of(int((now - age) // HOUR))


@dataclass(slots=True)
class RemovedData:
    """What was removed, or would be, of one grain.

    Attributes:
        dates: number of dates, over all clusters.
        rows: approximate for rollup files that are removed in part.
    """

    dates: int = 0
    files: int = 0
    bytes: int = 0
    rows: int = 0


@dataclass(slots=True)
class ExpireSummary:
    """What one `expire` did, or would do.

    Attributes:
        dry_run: nothing was changed.
        removed: by raw, minutes, hours, days.
        refused: expired data that could not be removed, one line each with the reason and what to run.
    """

    dry_run: bool = False
    removed: dict[str, RemovedData] = field(
        default_factory=lambda: {name: RemovedData() for name in Retention.__dataclass_fields__}
    )
    refused: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The JSON document; `removed` is `gone` there."""
        return {"dry_run": self.dry_run, "gone": asdict(self)["removed"], "refused": self.refused}


def expire(
    landing_root: Place,
    rollups_root: Place,
    keep: Retention,
    clock: Clock,
    cluster: str | None = None,
    *,
    dry_run: bool = False,
    stop: Stop | None = None,
    delta: bool = True,
) -> ExpireSummary:
    """Remove data beyond its retention; `cluster` None is all.

    Raises:
        AckscopeError: a folder or a file cannot be used.
        StoppedError: a stop was requested; the rest is removed next time.
    """
    require_folder(landing_root)
    stop = stop or Stop()
    landing, rollups, summary = (
        Landing(landing_root, clock),
        Rollups(rollups_root, go_on=stop.go_on, delta=delta),
        ExpireSummary(dry_run),
    )
    now = clock.now().wall
    for name in sorted({it.cluster for it in landing.partitions()} | set(rollups.clusters())):
        if cluster in {None, name}:
            _expire_raw(landing, rollups, name, keep, now, summary, stop)
            stop.check()
            _expire_rollups(rollups, name, keep, now, summary)
    if not dry_run:
        rollups.vacuum()
    return summary


def _expire_raw(
    landing: Landing, rollups: Rollups, cluster: str, keep: Retention, now: float, summary: ExpireSummary, stop: Stop
) -> None:
    cuts = {True: keep.cut("days", now), False: keep.cut("raw", now)}
    partitions = [it for it in landing.partitions() if it.cluster == cluster]
    cut = cuts[False]
    if cut is not None:
        waiting = _not_ingested(landing, rollups, [it for it in partitions if it.table != FINDING_EVENTS], cut)
        if waiting:
            summary.refused.append(_not_ingested_refusal(cluster, waiting))
            # The first pending hour must not be below the floor.
            cut = cuts[False] = date_of(min(waiting) - 1)
    old = [it for it in partitions if _before(it.day, cuts[it.table == FINDING_EVENTS])]
    if not summary.dry_run and any(it.table != FINDING_EVENTS for it in old) and cut is not None:
        # Raise the floor before rows are removed, so that no hour is rebuilt from a part of its rows. The first hour of
        # `cut` also depends on removed rows.
        with rollups.writer_lock(cluster):
            raise_floor(landing.root, cluster, first_hour(cut) + 1)
    removed = summary.removed["raw"]
    removed.dates += len({it.day for it in old})
    for partition in old:
        stop.check()
        with rollups.writer_lock(cluster):
            if not summary.dry_run:
                _finish_compaction(landing.root, partition, now)
            for path, stats in landing.files(partition).items():
                removed.files, removed.bytes, removed.rows = (
                    removed.files + 1,
                    removed.bytes + _size(path),
                    removed.rows + stats.rows,
                )
                if not summary.dry_run:
                    path.unlink(missing_ok=True)
            if not summary.dry_run:
                _remove_empty(landing.root, partition)


def _not_ingested(landing: Landing, rollups: Rollups, partitions: Sequence[Partition], cut: date) -> set[int]:
    """Hours up to the first hour of `cut` with raw rows that may not be in the rollups."""
    waiting: set[int] = set()
    for partition in partitions:
        if partition.day <= cut:
            until = cluster_watermark(rollups.root, generation(), partition.cluster)
            known = _dates(rollups.manifest(partition.cluster))
            for path, stats in _existing_files(landing, partition):
                # Hours below the floor are not in `stats.hours`: they are never rebuilt.
                if not is_ingested(path, stamp_of(path), until) or (stats.hours and partition.day not in known):
                    waiting |= {hour for hour in stats.hours if hour <= first_hour(cut)}
    return waiting


def _existing_files(landing: Landing, partition: Partition) -> Iterator[tuple[Place, FileStats]]:
    for path, stats in landing.files(partition).items():
        if path.exists():
            yield path, stats


def _dates(manifest: Manifest) -> set[date]:
    """Dates that the rollups cover."""
    return {
        date_of(int(start))
        for name in (*MINUTES, *_names(HOURS))
        for it in manifest.files_for(name)
        for start in it.parts
    }


def _expire_rollups(rollups: Rollups, cluster: str, keep: Retention, now: float, summary: ExpireSummary) -> None:
    with rollups.writer_lock(cluster):
        transaction = rollups.transaction(cluster)
        manifest = transaction.manifest
        for grain, tables in _grains().items():
            cut = keep.cut(grain, now)
            if cut is None:
                continue
            dates: set[date] = set()
            for table in tables:
                hours = _expired_units(manifest, table, first_hour(cut))
                blocked = _not_downsampled(manifest, table) & hours
                if blocked:
                    summary.refused.append(_not_downsampled_refusal(cluster, table, blocked))
                hours -= blocked
                dates |= {date_of(hour) for hour in hours}
                _add_counts(summary.removed[grain], rollups.root, manifest, table, hours)
                if hours and not summary.dry_run:
                    transaction.drop_hours(
                        table, [hour + more for hour in sorted(hours) for more in range(hours_per_digest(table))]
                    )
            summary.removed[grain].dates += len(dates)
        if not summary.dry_run:
            transaction.commit()


def _grains() -> dict[str, tuple[Table, ...]]:
    return {
        "minutes": tuple(MINUTES.values()),
        "hours": tuple(HOURS.values()),
        "days": (*DAYS.values(), CHANGES, EPISODES),
    }


def _expired_units(manifest: Manifest, table: Table, end: int) -> set[int]:
    return {
        int(start)
        for it in manifest.files_for(table.name)
        for start in it.parts
        if int(start) + hours_per_digest(table) <= end
    }


def _not_downsampled(manifest: Manifest, table: Table) -> set[int]:
    """Hours of a table that the coarser table does not include yet."""
    for name, minutes in MINUTES.items():
        if table.name == name:
            return set(find_stale(manifest, DownsampleStep(minutes, HOURS[name], 1)).rebuild)
        if table.name == HOURS[name].name:
            return set(find_stale(manifest, DownsampleStep(HOURS[name], DAYS[name], 24)).rebuild)
    return set()


def _add_counts(removed: RemovedData, root: Place, manifest: Manifest, table: Table, hours: set[int]) -> None:
    for it in manifest.files_for(table.name):
        share = sum(int(start) in hours for start in it.parts) / max(1, len(it.parts))
        if share:
            removed.files += 1
            removed.rows += round(it.rows * share)
            removed.bytes += round(_size(root / it.path) * share)


def _not_ingested_refusal(cluster: str, hours: set[int]) -> str:
    dates = Counter(date_of(hour) for hour in hours)
    which = ", ".join(f"{day} ({count} h)" for day, count in sorted(dates.items())[:5])
    more = "" if len(dates) <= 5 else f" and {len(dates) - 5} more dates"
    return (
        f"cluster {cluster}: raw rows from {min(dates)} on stay, because some may not be rolled up yet: {which}{more}; "
        "run `ackscope pipeline run`, then `expire` again"
    )


def _not_downsampled_refusal(cluster: str, table: Table, hours: set[int]) -> str:
    return (
        f"cluster {cluster}: {len(hours)} {'hour' if hours_per_digest(table) == 1 else 'day'}s of {table.name} from "
        f"{date_of(min(hours))} on stay, because they are not downsampled yet; run `ackscope pipeline run`"
    )


def _names(tables: Mapping[str, Table]) -> Iterator[str]:
    return (table.name for table in tables.values())


def _before(day: date, cut: date | None) -> bool:
    return cut is not None and day < cut


def _size(path: Place) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _finish_compaction(root: Place, partition: Partition, now: float) -> None:
    if isinstance(root, ObjectPath):
        tidy(root, partition, now)
    elif was_interrupted(root, partition):
        finish(root, partition)


def _remove_empty(root: Place, partition: Partition) -> None:
    if isinstance(root, ObjectPath):
        forget(root, partition)
        return
    try:
        (root / partition.folder).rmdir()
    except OSError:
        # It holds files that are not ours.
        return

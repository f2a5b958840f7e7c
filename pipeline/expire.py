"""Forget what is old: raw rows first, minutes later, hours much later, days maybe never."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path

from ackscope.clock import Clock
from ackscope.errors import UsageError
from ackscope.manifest import Manifest
from ackscope.tables import CHANGES, DAYS, EPISODES, FINDING_EVENTS, HOURS, MINUTES, Table
from pipeline.coarse import Step, stale
from pipeline.hours import HOUR, date_of, first_hour
from pipeline.jobs import generation
from pipeline.stop import Stop
from pipeline.storage.compaction import cut_off, finish, rolled_up
from pipeline.storage.expired import raise_to
from pipeline.storage.footer import Contents
from pipeline.storage.landing import Landing, Partition, require_folder
from pipeline.storage.listing import stamp_of
from pipeline.storage.rollups import Rollups
from pipeline.storage.shelves import unit
from pipeline.storage.taken import taken

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long each grain is kept, in seconds; None is for ever.

    Whole UTC dates go. Findings and what Spark finds in the rollups stay as long as days.

    Raises:
        UsageError: a grain would go before a finer one, which would make it again.
    """

    raw: float | None = 3 * _DAY
    minutes: float | None = 30 * _DAY
    hours: float | None = 400 * _DAY
    days: float | None = None

    def __post_init__(self) -> None:
        if self.raw is not None and self.raw < _DAY:
            raise UsageError(
                "--raw is less than 1d: rows that come late would find their hour half gone; write 1d or more"
            )
        ordered = list(asdict(self).items())
        for (finer, shorter), (coarser, longer) in pairwise(ordered):
            # Raw rows that are kept for ever are left to the exporter, which has an age of its own for them.
            if longer is not None and (longer < shorter if shorter is not None else finer != "raw"):
                raise UsageError(
                    f"--{coarser} is shorter than --{finer}: what goes would be made again; "
                    f"keep {coarser} as long or longer"
                )

    def cut(self, grain: str, now: float) -> date | None:
        """The first date that is kept; None where all are."""
        kept: float | None = getattr(self, grain)
        return None if kept is None or kept >= now else date_of(int((now - kept) // HOUR))


@dataclass(slots=True)
class Gone:
    """What went, or would go, of one kind.

    Attributes:
        dates: of all clusters, those of which something went.
        rows: of rollups about, where a file goes in part.
    """

    dates: int = 0
    files: int = 0
    bytes: int = 0
    rows: int = 0


@dataclass(slots=True)
class Summary:
    """What one `expire` did, or would do.

    Attributes:
        dry_run: nothing was changed.
        gone: by raw, minutes, hours, days.
        refused: what is old enough and stays, a line each with the reason and what to run.
    """

    dry_run: bool = False
    gone: dict[str, Gone] = field(default_factory=lambda: {name: Gone() for name in Keep.__dataclass_fields__})
    refused: list[str] = field(default_factory=list)


def expire(
    landing_root: Path,
    rollups_root: Path,
    keep: Keep,
    clock: Clock,
    cluster: str | None = None,
    *,
    dry_run: bool = False,
    stop: Stop | None = None,
) -> Summary:
    """Remove what is older than it is kept; without `cluster`, of all.

    Raises:
        AckscopeError: a folder or a file cannot be used.
        StoppedError: a stop is wanted; what is left goes the next time.
    """
    require_folder(landing_root)
    stop = stop or Stop()
    landing, rollups, summary = Landing(landing_root, clock), Rollups(rollups_root, go_on=stop.go_on), Summary(dry_run)
    now = clock.now().wall
    for name in sorted({it.cluster for it in landing.partitions()} | set(rollups.clusters())):
        if cluster in {None, name}:
            _raw(landing, rollups, name, keep, now, summary, stop)
            stop.check()
            _rollups(rollups, name, keep, now, summary)
    if not dry_run:
        with rollups.only_writer():
            rollups.sweep()
    return summary


def _raw(
    landing: Landing, rollups: Rollups, cluster: str, keep: Keep, now: float, summary: Summary, stop: Stop
) -> None:
    cuts = {True: keep.cut("days", now), False: keep.cut("raw", now)}
    mine = [it for it in landing.partitions() if it.cluster == cluster]
    cut = cuts[False]
    if cut is not None:
        waiting = _not_rolled_up(landing, rollups, [it for it in mine if it.table != FINDING_EVENTS], cut)
        if waiting:
            summary.refused.append(_refusal(cluster, waiting))
            # The first hour that waits must not be below the mark.
            cut = cuts[False] = date_of(min(waiting) - 1)
    old = [it for it in mine if _before(it.day, cuts[it.table == FINDING_EVENTS])]
    if not summary.dry_run and any(it.table != FINDING_EVENTS for it in old) and cut is not None:
        # First the mark: from now on nobody rebuilds what loses its rows, or those of the minutes before it.
        with rollups.only_writer():
            raise_to(landing.root, cluster, first_hour(cut) + 1)
    gone = summary.gone["raw"]
    gone.dates += len({it.day for it in old})
    for partition in old:
        stop.check()
        with rollups.only_writer():
            if not summary.dry_run and cut_off(landing.root, partition):
                finish(landing.root, partition)
            for path, held in landing.files(partition).items():
                gone.files, gone.bytes, gone.rows = gone.files + 1, gone.bytes + _size(path), gone.rows + held.rows
                if not summary.dry_run:
                    path.unlink(missing_ok=True)
            if not summary.dry_run:
                _remove_empty(landing.root / partition.folder)


def _not_rolled_up(landing: Landing, rollups: Rollups, mine: Sequence[Partition], cut: date) -> set[int]:
    """Hours before `cut`, and the first of it, of which some raw row may not be in the rollups."""
    until = taken(rollups.root, generation())
    waiting: set[int] = set()
    for partition in mine:
        if partition.day <= cut:
            known = _dates(rollups.manifest(partition.cluster))
            for path, held in _there(landing, partition):
                # An hour before the floor is rolled up as it is, for ever.
                if not rolled_up(path, stamp_of(path), until) or (held.hours and partition.day not in known):
                    waiting |= {hour for hour in held.hours if hour <= first_hour(cut)}
    return waiting


def _there(landing: Landing, partition: Partition) -> Iterator[tuple[Path, Contents]]:
    for path, held in landing.files(partition).items():
        if path.exists():
            yield path, held


def _dates(manifest: Manifest) -> set[date]:
    """Dates of which the rollups say something."""
    return {
        date_of(int(start))
        for name in (*MINUTES, *_names(HOURS))
        for it in manifest.files_for(name)
        for start in it.parts
    }


def _rollups(rollups: Rollups, cluster: str, keep: Keep, now: float, summary: Summary) -> None:
    with rollups.only_writer():
        change = rollups.change(cluster)
        manifest = change.manifest
        for grain, tables in _grains().items():
            cut = keep.cut(grain, now)
            if cut is None:
                continue
            dates: set[date] = set()
            for table in tables:
                hours = _old(manifest, table, first_hour(cut))
                kept = _unmade(manifest, table) & hours
                if kept:
                    summary.refused.append(_unmade_refusal(cluster, table, kept))
                hours -= kept
                dates |= {date_of(hour) for hour in hours}
                _count(summary.gone[grain], rollups.root, manifest, table, hours)
                if hours and not summary.dry_run:
                    change.drop(table, [hour + more for hour in sorted(hours) for more in range(unit(table))])
            summary.gone[grain].dates += len(dates)
        if not summary.dry_run:
            change.commit()


def _grains() -> dict[str, tuple[Table, ...]]:
    return {
        "minutes": tuple(MINUTES.values()),
        "hours": tuple(HOURS.values()),
        "days": (*DAYS.values(), CHANGES, EPISODES),
    }


def _old(manifest: Manifest, table: Table, end: int) -> set[int]:
    return {
        int(start) for it in manifest.files_for(table.name) for start in it.parts if int(start) + unit(table) <= end
    }


def _unmade(manifest: Manifest, table: Table) -> set[int]:
    """Hours of a table of which the coarser one does not tell yet."""
    for name, minutes in MINUTES.items():
        if table.name == name:
            return set(stale(manifest, Step(minutes, HOURS[name], 1)).make)
        if table.name == HOURS[name].name:
            return set(stale(manifest, Step(HOURS[name], DAYS[name], 24)).make)
    return set()


def _count(gone: Gone, root: Path, manifest: Manifest, table: Table, hours: set[int]) -> None:
    for it in manifest.files_for(table.name):
        share = sum(int(start) in hours for start in it.parts) / max(1, len(it.parts))
        if share:
            gone.files += 1
            gone.rows += round(it.rows * share)
            gone.bytes += round(_size(root / it.path) * share)


def _refusal(cluster: str, hours: set[int]) -> str:
    dates = Counter(date_of(hour) for hour in hours)
    which = ", ".join(f"{day} ({count} h)" for day, count in sorted(dates.items())[:5])
    more = "" if len(dates) <= 5 else f" and {len(dates) - 5} more dates"
    return (
        f"cluster {cluster}: raw rows from {min(dates)} on stay, for some are not rolled up for sure: {which}{more}; "
        "run `ackscope pipeline run`, then this again"
    )


def _unmade_refusal(cluster: str, table: Table, hours: set[int]) -> str:
    return (
        f"cluster {cluster}: {len(hours)} {'hour' if unit(table) == 1 else 'day'}s of {table.name} from "
        f"{date_of(min(hours))} on stay, for nothing coarser was made of them yet; run `ackscope pipeline run`"
    )


def _names(tables: Mapping[str, Table]) -> Iterator[str]:
    return (table.name for table in tables.values())


def _before(day: date, cut: date | None) -> bool:
    return cut is not None and day < cut


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        # Something is left that is none of ours.
        return

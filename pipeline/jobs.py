"""The jobs `run`, which rebuilds everything that landing has, and `stream`, which follows new files."""

import fcntl
import shutil
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from ackscope import latency
from ackscope.clock import Clock, iso
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.manifest import VERSION
from ackscope.object_path import ObjectPath, Place
from ackscope.tables import LANDING, MINUTES, ROLLUPS
from pipeline import downsample
from pipeline.analysis.refresh import refresh
from pipeline.ingest_log import IngestLog
from pipeline.lag import MARGIN
from pipeline.progress import Progress
from pipeline.rebuild import rebuild
from pipeline.shard import ALL, Shard
from pipeline.side_by_side import side_by_side
from pipeline.stop import Stop, StoppedError
from pipeline.storage.landing import Landing, TouchedHours, require_folder
from pipeline.storage.lease import lease
from pipeline.storage.rollups import LOCKS, Rollups
from pipeline.storage.watermark import advance_watermark, reset_watermark
from pipeline.streaming import Follower, StreamStatus

log = get_logger(__name__)

_LOCK = "_lock"


@dataclass(slots=True)
class RunSummary:
    """What one `run` did.

    Attributes:
        landing_files: valid landing files.
        landing_rows: their rows that count, before deduplication.
        hours: hours of landing rows, counted per table and cluster.
        rollup_files: new files of minutes.
        rollup_rows: rows in the rollups now, by table.
        quarantined: landing files quarantined.
        misdated_rows: rows ignored, more than a day outside the date of their folder.
        seconds: total time, including Java's start.
    """

    landing_files: int = 0
    landing_rows: int = 0
    hours: int = 0
    rollup_files: int = 0
    rollup_rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLLUPS, 0))
    quarantined: int = 0
    misdated_rows: int = 0
    seconds: float = 0.0


# Starts Spark for a `with` block; called only when there is work.
SessionFactory = Callable[[], AbstractContextManager[SparkSession]]


def run(
    landing_root: Place,
    rollups_root: Place,
    session: SessionFactory,
    clock: Clock,
    progress: Progress | None = None,
    *,
    stop: Stop | None = None,
    minutes_only: bool = False,
    shard: Shard = ALL,
    delta: bool = True,
) -> RunSummary:
    """Rebuild every hour that landing has; then hours, days and analyses, unless `minutes_only`.

    Only clusters of the shard, several side by side. Spark is not started if landing has no rows.

    Raises:
        AckscopeError: a folder, a file, Java or Spark cannot be used.
        StoppedError: a stop was requested; committed data stays.
    """
    start, stop = clock.now(), stop or Stop()
    require_folder(landing_root)
    landing, rollups, summary = (
        Landing(landing_root),
        Rollups(rollups_root, go_on=stop.go_on, delta=delta),
        RunSummary(),
    )
    touched: TouchedHours = defaultdict(set)
    ingest_log, newest = IngestLog(start.wall - MARGIN), 0.0
    for partition in landing.partitions():
        stop.check()
        if partition.cluster not in shard:
            continue
        files = landing.files(partition)
        ingest_log.record(files)
        for stats in files.values():
            touched[partition.table, partition.cluster] |= stats.hours
            summary.landing_files += 1
            summary.landing_rows += stats.rows
            summary.misdated_rows += stats.misdated
            newest = max(newest, stats.last / 1e6 if stats.rows else 0.0)
    if any(touched.values()):
        with session() as spark:
            summary.rollup_files = rebuild(spark, landing, rollups, touched, ingest_log, stop.go_on, progress)

            def analyse(cluster: str) -> None:
                refresh(spark, landing, rollups, cluster, clock.now().wall, stop.go_on)
                stop.check()

            if not minutes_only:
                clusters = [it for it in rollups.clusters() if it in shard]
                downsample.refresh(spark, rollups, clusters, stop.go_on)
                stop.check()
                side_by_side(spark, clusters, analyse)
    rollups.vacuum(shard)
    advance_watermark(rollups_root, generation(), start.wall - MARGIN, shard)
    summary.hours = sum(len(hours) for hours in touched.values())
    summary.rollup_rows = rollups.row_counts(shard)
    summary.quarantined = landing.quarantined
    summary.seconds = round(clock.now().since(start), 3)
    rollups.write_status(asdict(_status(summary, newest, clock)), shard)
    return summary


def _status(summary: RunSummary, newest: float, clock: Clock) -> StreamStatus:
    """The status document of a `run`: everything that was there is rolled up."""
    reached = iso(newest) if newest else None
    return StreamStatus(
        updated_at=clock.now().iso(),
        landing_rows=summary.landing_rows,
        rollup_rows=sum(summary.rollup_rows.values()),
        quarantined=summary.quarantined,
        misdated_rows=summary.misdated_rows,
        landing_newest_at=reached,
        rolled_up_to=reached,
    )


def stream(
    landing_root: Place,
    rollups_root: Place,
    checkpoint: Path | None,
    trigger: float,
    session: SessionFactory,
    stop: Stop,
    clock: Clock,
    *,
    analyse_every: float | None = None,
    shard: Shard = ALL,
    delta: bool = True,
) -> StreamStatus:
    """Follow the landing files until a stop is requested; create their folder if it does not exist.

    `checkpoint` is the folder of Spark's checkpoint (None: both are in a bucket), `trigger` the seconds between two
    listings of landing, `analyse_every` the seconds between two analyses (None: as in `pipeline.maintenance`), `shard`
    has the clusters.

    Raises:
        AckscopeError: a folder, a file, Java or Spark cannot be used.
    """
    require_folder(landing_root)
    rollups, status = Rollups(rollups_root, go_on=stop.go_on, delta=delta), StreamStatus()
    progress = None if checkpoint is None else checkpoint / generation()
    replaced = threading.Event()
    if checkpoint is not None and progress is not None:
        try:
            landing_root.mkdir(parents=True, exist_ok=True)
            if not progress.exists() and any(checkpoint.glob("landing-*")):
                log.info("table versions changed since the last stream, ingesting all landing files again")
            progress.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"{error.filename}: cannot be created ({error.strerror}); pass a folder that this user can write"
            ) from None
    with suppress(StoppedError), ExitStack() as stack:
        if progress is not None:
            stack.enter_context(_checkpoint_lock(progress))
        if isinstance(rollups_root, ObjectPath):
            stack.enter_context(lease(stream_lease(rollups_root, shard), stop.go_on, lost=replaced.set))
        spark = stack.enter_context(session())
        if not any(cluster in shard for cluster in rollups.clusters()):
            if progress is not None:
                _reset_checkpoint(progress)
            reset_watermark(rollups_root, shard)
        log.info("following the landing folder", landing=str(landing_root), rollups=str(rollups_root))
        follower = Follower(
            spark,
            landing_root,
            rollups,
            stop,
            clock,
            generation(),
            analyse_every=analyse_every,
            shard=shard,
            replaced=replaced,
        )
        status = follower.status
        follower.follow(trigger, progress)
    return status


def generation() -> str:
    """The name of checkpoints that fit these table versions; others are ignored and everything is rebuilt."""
    landing, rollups = (".".join(str(table.version) for table in tables.values()) for tables in (LANDING, MINUTES))
    return f"landing-{landing}_rollups-{rollups}_{latency.BOUNDS_VERSION}_catalog-{VERSION}"


def _reset_checkpoint(progress: Path) -> None:
    """Forget all ingested files: without rollups none of them counts."""
    for path in progress.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)


def stream_lease(rollups_root: ObjectPath, shard: Shard) -> ObjectPath:
    """The lease of the stream of a shard; a cluster of this name would have its `@` encoded."""
    return rollups_root / LOCKS / f"@stream{shard.suffix}.json"


@contextmanager
def _checkpoint_lock(progress: Path) -> Iterator[None]:
    """Hold the lock of a checkpoint: two streams would each ingest half of the files."""
    with (progress / _LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(
                f"--checkpoint {progress.parent}: another stream uses it; stop that stream or pass another folder"
            ) from None
        yield

"""Follow the landing files: a source reports new ones, and their hours are rebuilt.

The source reads names only; the rebuild reads the minutes around the rows anyway, and includes files that arrived since
the source listed. Replaying a batch after a crash is harmless, because a rebuild depends on landing alone; so is a file
that the source reports after an earlier batch included it.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ackscope.clock import Clock, iso
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import ObjectPath, ObjectStorageError, Place
from ackscope.tables import Table
from pipeline.batches import Source
from pipeline.folder_source import FolderSource
from pipeline.ingest_log import IngestLog
from pipeline.lag import MARGIN, LagTracker
from pipeline.maintenance import Maintenance
from pipeline.object_source import ObjectSource
from pipeline.rebuild import ingest
from pipeline.session import SPARK_ERRORS, cause
from pipeline.shard import ALL, Shard
from pipeline.stop import Stop, StoppedError
from pipeline.storage.landing import Landing
from pipeline.storage.object_listing import ObjectListing
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import advance_watermark, read_watermark
from pipeline.storage_retry import StorageRetry

log = get_logger(__name__)

# Interval at which a stop request is noticed.
_POLL_SECONDS = 0.2

# The status file is rewritten at least this often.
_HEARTBEAT_SECONDS = 10.0

# Time that the last report may take: the storage may be away.
_LAST_REPORT_SECONDS = 5.0

# Share of the time spent on rebuilding, if rows stay fresh enough: this process shares the machine with the exporter.
# Files that arrive meanwhile go into the next batch.
_BUSY_SHARE = 0.25

# One pause and three batches together. On average rows wait half of that, 13 s.
_FRESHNESS_SECONDS = 26.0

# Share of the time that rebuilding may take when batches are long.
_MAX_BUSY_SHARE = 0.8


@dataclass(slots=True)
class StreamStatus:
    """The document of the status file; counts are since the stream started.

    Attributes:
        updated_at: when it was written, ISO 8601.
        batches: batches of new files rolled up.
        landing_rows: rows of the new files.
        rollup_rows: rows in the rollups now.
        quarantined: landing files quarantined.
        misdated_rows: rows ignored, more than a day outside the date of their folder.
        last_error: why the stream ended; None while it runs.
        landing_newest_at: time of the newest landing row, ISO 8601; None if unknown.
        rolled_up_to: time of the newest row that is rolled up.
        lag_seconds: age of the oldest landing row that is not rolled up, at `updated_at`; 0 if there is none.
    """

    updated_at: str = ""
    batches: int = 0
    landing_rows: int = 0
    rollup_rows: int = 0
    quarantined: int = 0
    misdated_rows: int = 0
    last_error: str | None = None
    landing_newest_at: str | None = None
    rolled_up_to: str | None = None
    lag_seconds: float = 0.0


class Follower:
    """One stream from landing files to rollups.

    Args:
        spark: the session.
        landing: the folder or prefix of the landing files.
        rollups: where they are rolled up.
        stop: ends it.
        clock: the time.
        generation: of the watermark.
        analyse_every: seconds between two analyses; None: as in `pipeline.maintenance`.
        shard: clusters that count.
        replaced: set once another stream does its work.

    Attributes:
        status: as it was last reported.
    """

    def __init__(
        self,
        spark: SparkSession,
        landing: Place,
        rollups: Rollups,
        stop: Stop,
        clock: Clock,
        generation: str,
        *,
        analyse_every: float | None = None,
        shard: Shard = ALL,
        replaced: threading.Event | None = None,
    ) -> None:
        self.status = StreamStatus()
        self._replaced = replaced or threading.Event()
        self._spark, self._rollups, self._stop = spark, rollups, stop
        self._clock, self._generation, self._shard = clock, generation, shard
        self._retry = StorageRetry(stop, clock, self._replaced)
        watermark = self._retry.repeat(lambda: read_watermark(rollups.root, generation, shard))
        self._listing = None
        if isinstance(landing, ObjectPath):
            self._listing = ObjectListing(landing, clock, watermark, shard)
        self._landing = Landing(landing, listing=self._listing)
        self._maintenance = Maintenance(spark, landing, rollups, stop, clock, analyse_every, shard)
        self._lag = LagTracker(landing, watermark, shard, self._listed if self._listing else None)
        self._ingest_log = IngestLog(watermark)
        self._reporter: threading.Thread | None = None
        self._busy = False

    def follow(self, trigger: float, checkpoint: Path | None = None) -> None:
        """Rebuild what new files touch until a stop is requested, at most one batch per `trigger` seconds.

        `checkpoint` is the folder of Spark's checkpoint, for landing files in a folder.

        Raises:
            DataError: Spark failed, or a folder cannot be used.
        """
        source: Source | None = None
        try:
            self._retry.repeat(lambda: self._rollups.vacuum(self._shard))
            self._retry.repeat(self._write_status)
            source = self._source(trigger, checkpoint)
            source.start(self._ingest)
            self._watch(source)
        except StoppedError:
            # A stop was requested while it waited for another writer, or for the storage.
            self._check_replaced()
            log.debug("stopped before the start")
        except SPARK_ERRORS as error:
            if not self._stop.requested:
                raise self._fail(cause(error)) from None
        finally:
            self._end(source)

    def _source(self, trigger: float, checkpoint: Path | None) -> Source:
        if self._listing is not None:
            return ObjectSource(self._listing, trigger, self._stop, self._retry, self._clock)
        if checkpoint is None:
            raise ValueError("a landing folder needs a checkpoint")
        landing = Path(str(self._landing.root))
        return FolderSource(self._spark, landing, checkpoint, trigger, self._shard, self._clock)

    def _watch(self, source: Source) -> None:
        written_at, batches = self._clock.now(), 0
        while not self._stop.requested:
            self._check_replaced()
            if not source.is_active:
                break
            now = self._clock.now()
            if self.status.batches != batches or now.since(written_at) > _HEARTBEAT_SECONDS:
                written_at, batches = now, self.status.batches
                self._report(source)
            self._maintenance.start_if_due()
            time.sleep(_POLL_SECONDS)
        else:
            return
        failure = source.failure
        if isinstance(failure, SPARK_ERRORS):
            failure = cause(failure)
        if isinstance(failure, Exception):
            self.status.last_error = str(failure)
            self._report(source)
            raise failure
        raise self._fail(failure)

    def _report(self, source: Source, seconds: float = 0.0) -> None:
        """Advance the watermark and write the status, in a thread: a request may take long if the storage is away."""

        def work() -> None:
            try:
                until = source.reached
                if until > self._lag.watermark:
                    self._lag.advance(until)
                    advance_watermark(self._rollups.root, self._generation, until - MARGIN, self._shard)
                self._write_status()
            except ObjectStorageError as error:
                log.debug("status not written", error=str(error))
            except DataError as error:
                log.warning("status not written", error=str(error))

        if self._reporter is None or not self._reporter.is_alive():
            self._reporter = threading.Thread(target=work, name="status", daemon=True)
            self._reporter.start()
        self._reporter.join(seconds)

    def _end(self, source: Source | None) -> None:
        context = self._spark.sparkContext
        self._maintenance.end()
        try:
            # Errors of cancelled jobs are expected.
            context.setLogLevel("OFF")
            if source is not None:
                source.end(self._cancel)
            context.setLogLevel("WARN")
        except SPARK_ERRORS as error:
            log.debug("the stream did not stop cleanly", error=cause(error))
        if source is not None:
            self._report(source, _LAST_REPORT_SECONDS)

    def _cancel(self) -> bool:
        """Cancel running jobs; return whether there were any. Between two Spark jobs there is nothing to cancel."""
        is_busy = self._busy or self._maintenance.busy
        if is_busy:
            self._spark.sparkContext.cancelAllJobs()
        return is_busy

    def _check_replaced(self) -> None:
        if self._replaced.is_set():
            raise self._fail("another stream took over its work; let only one run")

    def _fail(self, reason: str) -> DataError:
        self.status.last_error = reason
        return DataError(f"the stream over {self._landing.root} ended: {reason}")

    def _ingest(self, paths: set[Place], alone: bool, trigger: float) -> None:  # noqa: FBT001
        """Roll up a batch of files, and pause before the next one."""
        self._busy = True
        try:
            busy = self._retry.repeat(lambda: self._roll_up(paths, alone=alone))
            self._pause(busy, trigger)
        finally:
            self._busy = False

    def _roll_up(self, paths: set[Place], *, alone: bool) -> float:
        """Roll up files; return how long it took, without earlier attempts."""
        start = self._clock.now()
        if self._listing is not None and self._retry.since is not None:
            # Also what arrived while the storage was away.
            self._listing.refresh()
        self._ingest_log.advance(self._lag.watermark - MARGIN)
        mine = {path for path in paths if self._is_mine(path)}
        go_on, landing, rollups = self._stop.go_on, self._landing, self._rollups
        ingested = ingest(self._spark, landing, rollups, mine, self._ingest_log, go_on, alone=alone)
        newest = [stats.last for stats in (*ingested.requested.values(), *ingested.concurrent.values()) if stats.rows]
        self._lag.add(mine | ingested.concurrent.keys(), max(newest) / 1e6 if newest else None)
        self.status.landing_rows += sum(stats.rows for stats in ingested.requested.values())
        self.status.misdated_rows += sum(stats.misdated for stats in ingested.requested.values())
        if self._listing is not None:
            self._listing.done(paths | ingested.concurrent.keys())
        self.status.batches += 1
        return self._clock.now().since(start)

    def _is_mine(self, path: Place) -> bool:
        partition = self._landing.partition_of(path.parent)
        return partition is None or partition.cluster in self._shard

    def _pause(self, busy: float, trigger: float) -> None:
        """Pause before the batch ends, to limit the share of time spent rebuilding; the source then lists again."""
        # The first batch includes the warm-up of Java, so its duration says little about the next ones.
        if self.status.batches > 1:
            self._retry.wait(pause_after(busy) - trigger)

    def _listed(self) -> Iterable[tuple[float, Place, Table]]:
        """The files of a bucket that are not rolled up."""
        if self._listing is None:
            return []
        if self._retry.since is None:
            self._listing.refresh()
        return self._listing.new()

    def _write_status(self) -> None:
        waiting, now = self._lag.pending(), self._clock.now()
        newest = [moment for moment in (self._lag.newest, waiting.newest) if moment is not None]
        # While the storage is away, there may be files that nobody can see.
        oldest = [moment for moment in (waiting.oldest, self._retry.since) if moment is not None]
        self.status.updated_at = now.iso()
        self.status.quarantined = self._landing.quarantined
        self.status.rollup_rows = sum(self._rollups.row_counts(self._shard).values())
        self.status.landing_newest_at = iso(max(newest)) if newest else None
        self.status.rolled_up_to = None if self._lag.newest is None else iso(self._lag.newest)
        self.status.lag_seconds = round(max(0.0, now.wall - min(oldest)), 3) if oldest else 0.0
        document: dict[str, Any] = asdict(self.status)
        self._rollups.write_status(document, self._shard)


def pause_after(busy: float) -> float:
    """Seconds from the end of a batch that took `busy` seconds to the next batch."""
    return max(busy * (1 / _MAX_BUSY_SHARE - 1), min(busy * (1 / _BUSY_SHARE - 1), _FRESHNESS_SECONDS - 3 * busy))

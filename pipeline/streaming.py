"""Follow the landing folder: Spark's file source reports new files, and their hours are rebuilt.

The source reads names only; the rebuild reads the minutes around the rows anyway, and includes files that arrived since
the source listed. Replaying a batch after a crash is harmless, because a rebuild depends on landing alone; so is a file
that the source reports after an earlier batch included it.
"""

import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ackscope.clock import Clock, iso
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import Place
from pipeline.frames import spark_path
from pipeline.ingest_log import IngestLog
from pipeline.lag import MARGIN, LagTracker
from pipeline.maintenance import Maintenance
from pipeline.rebuild import ingest
from pipeline.session import SPARK_ERRORS, cause
from pipeline.shard import ALL, Shard
from pipeline.stop import Stop, StoppedError
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups
from pipeline.storage.watermark import advance_watermark, read_watermark

log = get_logger(__name__)

_FILE_SCHEMA = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"

_MAX_BATCH_FILES = 5000

# Interval at which a stop request is noticed.
_POLL_SECONDS = 0.2

# The status file is rewritten at least this often.
_HEARTBEAT_SECONDS = 10.0

# Time that a batch gets to end after a stop request; it usually takes a fraction of a second.
_STOP_SECONDS = 10.0

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
    """One stream from a landing folder to a rollup folder."""

    def __init__(
        self,
        spark: SparkSession,
        landing: Landing,
        rollups: Rollups,
        stop: Stop,
        clock: Clock,
        *,
        analyse_every: float | None = None,
        shard: Shard = ALL,
    ) -> None:
        self.status = StreamStatus()
        self._shard = shard
        self._spark, self._landing, self._rollups, self._stop = spark, landing, rollups, stop
        self._clock = clock
        self._maintenance = Maintenance(spark, landing.root, rollups, stop, clock, analyse_every, shard)
        self._lag = LagTracker(landing.root, 0.0)
        self._ingest_log = IngestLog(0.0)
        self._generation = ""
        self._trigger = 0.0
        self._busy = False
        self._full_batch: int | None = None
        self._done_batch: int | None = None
        self._failure: Exception | None = None

    def follow(self, checkpoint: Path, trigger: float) -> None:
        """Rebuild what new files touch until a stop is requested, at most one batch per `trigger` seconds.

        Raises:
            DataError: Spark failed, or a folder cannot be used.
        """
        self._trigger, self._generation = trigger, checkpoint.name
        watermark = read_watermark(self._rollups.root, self._generation, self._shard)
        self._lag, self._ingest_log = LagTracker(self._landing.root, watermark, self._shard), IngestLog(watermark)
        query: StreamingQuery | None = None
        try:
            self._rollups.vacuum(self._shard)
            self._write_status()
            query = self._start(checkpoint, trigger)
            self._watch(query)
        except StoppedError:
            # A stop was requested while it waited for another writer.
            log.debug("stopped before the start")
        except SPARK_ERRORS as error:
            if not self._stop.requested:
                raise self._fail(cause(error)) from None
        finally:
            self._end(query, checkpoint)

    def _start(self, checkpoint: Path, trigger: float) -> StreamingQuery:
        files = (
            self._spark.readStream.format("binaryFile")
            .schema(_FILE_SCHEMA)
            .option("recursiveFileLookup", value=True)
            .option("pathGlobFilter", "*.parquet")
            # A file may be quarantined between listing and reading.
            .option("ignoreMissingFiles", value=True)
            # One rebuild of an hour serves all its files: after a pause, many are ingested together.
            .option("maxFilesPerTrigger", _MAX_BATCH_FILES)
            # No cache: each batch lists the folder, so a batch below the maximum has all new files.
            .option("maxCachedFiles", 0)
            # The source forgets names older than this, and ignores older files.
            .option("maxFileAge", "30d")
            .load(_source_path(self._landing.root, self._shard))
        )
        return (
            files.select("path")
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", f"file:{checkpoint.absolute()}")
            .trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
            .start()
        )

    def _watch(self, query: StreamingQuery) -> None:
        written_at, batches = self._clock.now(), 0
        while not self._stop.requested:
            if not query.isActive:
                break
            now = self._clock.now()
            if self.status.batches != batches or now.since(written_at) > _HEARTBEAT_SECONDS:
                written_at, batches = now, self.status.batches
                self._advance_watermark(query)
                self._write_status()
            self._maintenance.start_if_due()
            time.sleep(_POLL_SECONDS)
        else:
            return
        if self._failure is not None:
            self.status.last_error = str(self._failure)
            self._write_status()
            raise self._failure
        raise self._fail(cause(query.exception() or RuntimeError("no reason given")))

    def _advance_watermark(self, query: StreamingQuery) -> None:
        """Advance the watermark to the last listing that found nothing more."""
        progress = query.lastProgress
        if progress is None or self._failure is not None:
            return
        idle = not progress.numInputRows
        if idle or (
            self._done_batch is not None
            and progress.batchId <= self._done_batch
            and progress.batchId != self._full_batch
        ):
            self._lag.advance(datetime.fromisoformat(progress.timestamp).timestamp())
            advance_watermark(self._rollups.root, self._generation, self._lag.watermark - MARGIN, self._shard)

    def _end(self, query: StreamingQuery | None, checkpoint: Path) -> None:
        context = self._spark.sparkContext
        self._maintenance.end()
        try:
            # Errors of cancelled jobs are expected.
            context.setLogLevel("OFF")
            self._drain(checkpoint)
            if query is not None:
                query.stop()
            context.setLogLevel("WARN")
        except SPARK_ERRORS as error:
            log.debug("the stream did not stop cleanly", error=cause(error))
        self._write_status()

    def _drain(self, checkpoint: Path) -> None:
        """Cancel a running rebuild, or wait until Spark has recorded the last batch, so that it is not replayed."""
        start = self._clock.now()
        while self._clock.now().since(start) < _STOP_SECONDS:
            if self._busy or self._maintenance.busy:
                # Repeated, because between two Spark jobs there is nothing to cancel.
                self._spark.sparkContext.cancelAllJobs()
            elif self._done_batch is None or (checkpoint / "commits" / str(self._done_batch)).exists():
                break
            time.sleep(0.05)

    def _fail(self, reason: str) -> DataError:
        self.status.last_error = reason
        self._write_status()
        return DataError(f"the stream over {self._landing.root} ended: {reason}")

    def _batch(self, batch: DataFrame, number: int) -> None:
        start, self._busy = self._clock.now(), True
        try:
            self._ingest_batch(batch, number)
            self._done_batch = number
            self._pause(self._clock.now().since(start))
        except StoppedError:
            # Reraised, so that Spark does not record the batch; it is replayed after a restart.
            raise
        except Exception as error:
            # Spark turns every error into pages of text, so keep the original for `follow`.
            self._failure = error
            raise
        finally:
            self._busy = False

    def _ingest_batch(self, batch: DataFrame, number: int) -> None:
        paths = {Path(text.removeprefix("file:")) for text in batch.toArrow()["path"].to_pylist()}
        if len(paths) >= _MAX_BATCH_FILES:
            self._full_batch = number
        self._ingest_log.advance(self._lag.watermark - MARGIN)
        go_on, alone = self._stop.go_on, number == self._full_batch
        paths = {path for path in paths if self._is_mine(path)}
        ingested = ingest(self._spark, self._landing, self._rollups, paths, self._ingest_log, go_on, alone=alone)
        newest = [stats.last for stats in (*ingested.requested.values(), *ingested.concurrent.values()) if stats.rows]
        self._lag.add(paths | ingested.concurrent.keys(), max(newest) / 1e6 if newest else None)
        self.status.landing_rows += sum(stats.rows for stats in ingested.requested.values())
        self.status.misdated_rows += sum(stats.misdated for stats in ingested.requested.values())
        self.status.batches += 1

    def _is_mine(self, path: Path) -> bool:
        partition = self._landing.partition_of(path.parent)
        return partition is None or partition.cluster in self._shard

    def _pause(self, busy: float) -> None:
        """Pause before the batch ends, to limit the share of time spent rebuilding; Spark then lists the next batch."""
        if self.status.batches == 1:
            # The first batch includes the warm-up of Java, so its duration says little about the next ones.
            return
        end, pause = self._clock.now(), pause_after(busy) - self._trigger
        while not self._stop.requested and self._clock.now().since(end) < pause:
            time.sleep(_POLL_SECONDS)

    def _write_status(self) -> None:
        waiting, now = self._lag.pending(), self._clock.now()
        newest = [moment for moment in (self._lag.newest, waiting.newest) if moment is not None]
        self.status.updated_at = now.iso()
        self.status.quarantined = self._landing.quarantined
        self.status.rollup_rows = sum(self._rollups.row_counts(self._shard).values())
        self.status.landing_newest_at = iso(max(newest)) if newest else None
        self.status.rolled_up_to = None if self._lag.newest is None else iso(self._lag.newest)
        self.status.lag_seconds = 0.0 if waiting.oldest is None else round(max(0.0, now.wall - waiting.oldest), 3)
        document: dict[str, Any] = asdict(self.status)
        self._rollups.write_status(document, self._shard)


def _source_path(landing: Place, shard: Shard) -> str:
    """What Spark lists; Hadoop's patterns are those of a shell."""
    path = spark_path(Path(str(landing)))
    return f"{path}/*/cluster={{{','.join(shard.patterns)}}}" if shard.patterns else path


def pause_after(busy: float) -> float:
    """Seconds from the end of a batch that took `busy` seconds to the next batch."""
    return max(busy * (1 / _MAX_BUSY_SHARE - 1), min(busy * (1 / _BUSY_SHARE - 1), _FRESHNESS_SECONDS - 3 * busy))

"""New files of a landing folder, as Spark's file source reports them.

Its checkpoint remembers which files were reported, so after a restart only others are.
"""

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from ackscope.clock import Clock
from pipeline.batches import MAX_BATCH_FILES, STOP_SECONDS, Cancel, Ingest
from pipeline.frames import spark_path
from pipeline.session import cause
from pipeline.shard import Shard
from pipeline.stop import StoppedError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from ackscope.object_path import Place

_FILE_SCHEMA = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


class FolderSource:
    """One query of Spark over a landing folder.

    Args:
        spark: the session.
        landing: the folder.
        checkpoint: the folder of Spark's checkpoint.
        trigger: seconds between two listings.
        shard: clusters that count.
        clock: for the time that the end may take.
    """

    def __init__(
        self, spark: SparkSession, landing: Path, checkpoint: Path, trigger: float, shard: Shard, clock: Clock
    ) -> None:
        self._spark, self._landing, self._checkpoint = spark, landing, checkpoint
        self._trigger, self._shard, self._clock = trigger, shard, clock
        self._query: StreamingQuery | None = None
        self._full_batch: int | None = None
        self._done_batch: int | None = None
        self._failure: Exception | None = None

    def start(self, ingest: Ingest) -> None:
        """Report files from now on."""

        def batch(files: DataFrame, number: int) -> None:
            paths: set[Place] = {Path(text.removeprefix("file:")) for text in files.toArrow()["path"].to_pylist()}
            if len(paths) >= MAX_BATCH_FILES:
                self._full_batch = number
            try:
                ingest(paths, number == self._full_batch, self._trigger)
            except StoppedError:
                # Reraised, so that Spark does not record the batch; it is replayed after a restart.
                raise
            except Exception as error:
                # Spark turns every error into pages of text, so keep the original.
                self._failure = error
                raise
            self._done_batch = number

        files = (
            self._spark.readStream.format("binaryFile")
            .schema(_FILE_SCHEMA)
            .option("recursiveFileLookup", value=True)
            .option("pathGlobFilter", "*.parquet")
            # A file may be quarantined between listing and reading.
            .option("ignoreMissingFiles", value=True)
            # One rebuild of an hour serves all its files: after a pause, many are ingested together.
            .option("maxFilesPerTrigger", MAX_BATCH_FILES)
            # No cache: each batch lists the folder, so a batch below the maximum has all new files.
            .option("maxCachedFiles", 0)
            # The source forgets names older than this, and ignores older files.
            .option("maxFileAge", "30d")
            .load(_source_path(self._landing, self._shard))
        )
        self._query = (
            files.select("path")
            .writeStream.foreachBatch(batch)
            .option("checkpointLocation", f"file:{self._checkpoint.absolute()}")
            .trigger(processingTime=f"{round(self._trigger * 1000)} milliseconds")
            .start()
        )

    @property
    def is_active(self) -> bool:
        """Whether it still reports files."""
        return self._query is not None and self._query.isActive

    @property
    def failure(self) -> Exception | str:
        """Why it is not active any more."""
        if self._failure is not None:
            return self._failure
        return cause((self._query and self._query.exception()) or RuntimeError("no reason given"))

    @property
    def reached(self) -> float:
        """Every file that existed at this time is ingested: the time of the last listing that found nothing more."""
        progress = None if self._query is None else self._query.lastProgress
        if progress is None or self._failure is not None:
            return 0.0
        idle = not progress.numInputRows
        is_done = self._done_batch is not None and progress.batchId <= self._done_batch
        if idle or (is_done and progress.batchId != self._full_batch):
            return datetime.fromisoformat(progress.timestamp).timestamp()
        return 0.0

    def end(self, cancel: Cancel) -> None:
        """Cancel a running batch, or wait until Spark has recorded the last one, so that it is not replayed."""
        start = self._clock.now()
        while self._clock.now().since(start) < STOP_SECONDS:
            done = self._done_batch
            if not cancel() and (done is None or (self._checkpoint / "commits" / str(done)).exists()):
                break
            time.sleep(0.05)
        if self._query is not None:
            self._query.stop()


def _source_path(landing: Path, shard: Shard) -> str:
    """What Spark lists; Hadoop's patterns are those of a shell."""
    path = spark_path(landing)
    return f"{path}/*/cluster={{{','.join(shard.patterns)}}}" if shard.patterns else path

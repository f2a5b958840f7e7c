"""Follow the landing folder: Spark's file source says which files are new, and their hours are rebuilt.

The source reads names and no rows: a batch needs to know which hours were touched, and the rebuild reads those
hours anyway. That a batch may be replayed after a crash does no harm, for a rebuild only depends on landing.
"""

import logging
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ackscope.clock import Clock
from ackscope.errors import DataError
from pipeline.rebuild import StoppedError, rebuild, spark_path
from pipeline.session import SPARK_ERRORS, cause
from pipeline.stop import Stop
from pipeline.storage.landing import Landing, Partition, Touched
from pipeline.storage.rollups import Rollups

log = logging.getLogger(__name__)

_FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"

_LOOK = 0.2
"""Seconds between two looks at the wish to stop."""

_SIGN_OF_LIFE = 10.0
"""Seconds after which the status is written again, though nothing arrived."""


_PATIENCE = 10.0
"""Seconds that a batch gets to end once a stop is wanted; it takes a fraction of one."""

_SHARE = 0.25
"""The most of the time that is spent on rebuilding: a full hour of many small files costs seconds a batch, and this
process is a guest beside the exporter. What arrives meanwhile waits for the next batch, which takes all of it."""

_LONGEST_REST = 30.0
"""Seconds."""


@dataclass(slots=True)
class Status:
    """The document of the status file; counts are since this stream started.

    Attributes:
        updated_at: when this was written, ISO 8601.
        batches: batches of new files that were rolled up.
        landing_rows: rows of the new files.
        rollup_rows: rows that stand in the rollup files now.
        quarantined: landing files set apart.
        misdated_rows: rows left out, more than a day outside the date of their folder.
        last_error: what ended the stream; None while it runs.
    """

    updated_at: str = ""
    batches: int = 0
    landing_rows: int = 0
    rollup_rows: int = 0
    quarantined: int = 0
    misdated_rows: int = 0
    last_error: str | None = None


class Follower:
    """One stream: landing folder, rollup folder, and the session between them."""

    def __init__(self, spark: SparkSession, landing: Landing, rollups: Rollups, stop: Stop, clock: Clock) -> None:
        self.status = Status()
        self._spark, self._landing, self._rollups, self._stop = spark, landing, rollups, stop
        self._clock = clock
        self._trigger = 0.0
        self._busy = False
        self._done: int | None = None
        self._failure: Exception | None = None

    def follow(self, checkpoint: Path, trigger: float) -> None:
        """Rebuild what new files touch, until a stop is wanted; a batch every `trigger` seconds at most.

        Raises:
            DataError: Spark, or a folder, cannot go on.
        """
        self._trigger = trigger
        with self._rollups.only_writer():
            self._rollups.sweep()
        self._say()
        query: StreamingQuery | None = None
        try:
            query = self._start(checkpoint, trigger)
            self._watch(query)
        except SPARK_ERRORS as error:
            if not self._stop.wanted:
                raise self._ended(cause(error)) from None
        finally:
            self._end(query, checkpoint)

    def _start(self, checkpoint: Path, trigger: float) -> StreamingQuery:
        files = (
            self._spark.readStream.format("binaryFile")
            .schema(_FILES)
            .option("recursiveFileLookup", value=True)
            .option("pathGlobFilter", "*.parquet")
            # A file may be set apart between being listed and being looked at.
            .option("ignoreMissingFiles", value=True)
            # One rebuild of an hour serves all its files: after a pause, take many at once.
            .option("maxFilesPerTrigger", 5000)
            # The source forgets names older than this, and takes no older files.
            .option("maxFileAge", "30d")
            .load(spark_path(self._landing.root))
        )
        return (
            files.select("path")
            .writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", f"file:{checkpoint.absolute()}")
            .trigger(processingTime=f"{round(trigger * 1000)} milliseconds")
            .start()
        )

    def _watch(self, query: StreamingQuery) -> None:
        said, batches = self._clock.now(), 0
        while not self._stop.wanted:
            if not query.isActive:
                break
            now = self._clock.now()
            if self.status.batches != batches or now.since(said) > _SIGN_OF_LIFE:
                said, batches = now, self.status.batches
                self._say()
            time.sleep(_LOOK)
        else:
            return
        if self._failure is not None:
            self.status.last_error = str(self._failure)
            self._say()
            raise self._failure
        raise self._ended(cause(query.exception() or RuntimeError("it says nothing of why")))

    def _end(self, query: StreamingQuery | None, checkpoint: Path) -> None:
        context = self._spark.sparkContext
        try:
            # What it says of jobs that are cut off is no news.
            context.setLogLevel("OFF")
            self._let_go(checkpoint)
            if query is not None:
                query.stop()
            context.setLogLevel("WARN")
        except SPARK_ERRORS as error:
            log.debug("the stream did not stop in order: %s", cause(error))
        self._say()

    def _let_go(self, checkpoint: Path) -> None:
        """Cut a rebuild off; or wait for Spark's note that the last batch is done, or it would come again."""
        start = self._clock.now()
        while self._clock.now().since(start) < _PATIENCE:
            if self._busy:
                # Again and again: between two of its jobs there is nothing to cancel.
                self._spark.sparkContext.cancelAllJobs()
            elif self._done is None or (checkpoint / "commits" / str(self._done)).exists():
                break
            time.sleep(0.05)

    def _ended(self, reason: str) -> DataError:
        self.status.last_error = reason
        self._say()
        return DataError(f"the stream over {self._landing.root} ended: {reason}")

    def _batch(self, batch: DataFrame, number: int) -> None:
        start, self._busy = self._clock.now(), True
        try:
            self._take(batch)
            self._done = number
            self._rest(self._clock.now().since(start))
        except StoppedError:
            # Raised on to Spark, or it would count the batch as done; after a restart it comes again.
            raise
        except Exception as error:
            # The boundary to Spark, which turns every error into pages of text: keep the original for `follow`.
            self._failure = error
            raise
        finally:
            self._busy = False

    def _take(self, batch: DataFrame) -> None:
        paths = {Path(text.removeprefix("file:")) for text in batch.toArrow()["path"].to_pylist()}
        folders: dict[Partition, set[Path]] = defaultdict(set)
        for path in paths:
            partition = self._landing.partition_of(path.parent)
            if partition is not None:
                folders[partition].add(path)
        rows = misdated = 0
        touched: Touched = defaultdict(set)
        near: Touched = defaultdict(set)
        for partition, new in folders.items():
            for path, held in self._landing.files(partition).items():
                if path in new:
                    touched[partition.table, partition.cluster] |= held.hours
                    near[partition.table, partition.cluster] |= held.near
                    rows += held.rows
                    misdated += held.misdated
        rebuild(self._spark, self._landing, self._rollups, touched, near, lambda: not self._stop.wanted)
        self.status.landing_rows += rows
        self.status.misdated_rows += misdated
        self.status.batches += 1

    def _rest(self, busy: float) -> None:
        """Stay within the share of time, in the batch that is done: the next one is then listed afterwards."""
        if self.status.batches == 1:
            # Java's own start costs more than the batch.
            return
        end, pause = self._clock.now(), min(busy * (1 / _SHARE - 1) - self._trigger, _LONGEST_REST)
        while not self._stop.wanted and self._clock.now().since(end) < pause:
            time.sleep(_LOOK)

    def _say(self) -> None:
        self.status.updated_at = self._clock.now().iso()
        self.status.quarantined = self._landing.quarantined
        self.status.rollup_rows = sum(self._rollups.counts().values())
        document: dict[str, Any] = asdict(self.status)
        self._rollups.say(document)

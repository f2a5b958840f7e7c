"""New files of a landing prefix in a bucket, from our own listing: Spark's file source would need Hadoop's connectors.

There is no checkpoint: after a restart, all files since the last watermark are reported again, which only costs time.
"""

import threading
import time

from ackscope.clock import Clock
from pipeline.batches import MAX_BATCH_FILES, STOP_SECONDS, Cancel, Ingest
from pipeline.stop import Stop, StoppedError
from pipeline.storage.object_listing import ObjectListing
from pipeline.storage_retry import StorageRetry


class ObjectSource:
    """A thread that lists a bucket and ingests what is new.

    Args:
        listing: of the bucket; the landing that is read must use the same, and who ingests files must tell it.
        trigger: seconds between two listings.
        stop: ends it.
        retry: repeats listings while the bucket is away.
        clock: for the time that the end may take.
    """

    def __init__(self, listing: ObjectListing, trigger: float, stop: Stop, retry: StorageRetry, clock: Clock) -> None:
        self._listing, self._trigger, self._stop = listing, trigger, stop
        self._retry, self._clock = retry, clock
        self._failure: Exception | None = None
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self, ingest: Ingest) -> None:
        """Report files from now on."""
        # A request that hangs must not keep the process.
        self._thread = threading.Thread(target=self._run, args=(ingest,), name="landing", daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it still reports files."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def failure(self) -> Exception | str:
        """Why it is not active any more."""
        return self._failure or "no reason given"

    @property
    def reached(self) -> float:
        """Every file that existed at this time is ingested: the time of the last whole listing, once all is done."""
        return self._listing.reached

    def end(self, cancel: Cancel) -> None:
        """Cancel a running batch, and wait for the thread."""
        self._ended, start = True, self._clock.now()
        while self._clock.now().since(start) < STOP_SECONDS and (cancel() or self.is_active):
            time.sleep(0.05)

    def _run(self, ingest: Ingest) -> None:
        try:
            while not self._stop.requested and not self._ended:
                self._retry.repeat(self._listing.refresh)
                found = [path for _, path, _ in self._listing.new()]
                paths = set(found[:MAX_BATCH_FILES])
                if paths:
                    ingest(paths, len(found) > MAX_BATCH_FILES, self._trigger)
                self._retry.wait(self._trigger)
        except StoppedError:
            return
        # The boundary of this thread: the stream ends with the reason.
        except Exception as error:  # noqa: BLE001
            self._failure = error

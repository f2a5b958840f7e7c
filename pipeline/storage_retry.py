"""Work on object storage that is repeated until the storage answers, for a job that never ends by itself."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ackscope.clock import Clock
from ackscope.log import get_logger
from ackscope.object_path import ObjectStorageError
from pipeline.session import JobError
from pipeline.stop import Stop, StoppedError
from pipeline.storage.lease import RENEW_SECONDS
from pipeline.storage.store import LostCommitError

log = get_logger(__name__)

T = TypeVar("T")

# Pause after a failure, doubled each time. The storage client itself has tried for 20 s by then.
_FIRST_SECONDS, _LONGEST_SECONDS = 1.0, 10.0
# Repeats of a Spark job that fails, before the error is final.
_REPEATED_JOBS = 3
# Interval at which a stop request is noticed.
_POLL_SECONDS = 0.2


class StorageRetry:
    """Repeats work while the storage is away, or another writer came first; logs when that begins and when it ends.

    Args:
        stop: ends it.
        clock: the time.
        replaced: set once another process does this work for good; the owner of the event says so.

    Attributes:
        since: the beginning of the work that fails, seconds since 1970; None while all is well.
    """

    def __init__(self, stop: Stop, clock: Clock, replaced: threading.Event | None = None) -> None:
        self.since: float | None = None
        self._stop, self._clock, self._replaced = stop, clock, replaced or threading.Event()

    def repeat(self, work: Callable[[], T]) -> T:
        """The result of `work`, however often it has to be tried; it must be complete or without effect.

        A Spark job that fails is repeated a few times, because one task that is lost fails a job.

        Raises:
            JobError: a Spark job fails again and again.
            StoppedError: a stop was requested while it failed, or another process does the work now.
        """
        pause, jobs_failed = _FIRST_SECONDS, 0
        while True:
            start = self._clock.now()
            try:
                done = work()
            except (ObjectStorageError, LostCommitError, JobError) as error:
                self._check()
                jobs_failed += isinstance(error, JobError)
                if jobs_failed > _REPEATED_JOBS:
                    raise
                if isinstance(error, LostCommitError):
                    # The other writer may have taken the lease, too, which its next renewal shows.
                    self.wait(RENEW_SECONDS)
                    self._check()
                self._begin(str(error), start.wall)
                self.wait(pause)
                self._check()
                pause = min(2 * pause, _LONGEST_SECONDS)
            else:
                if self.since is not None:
                    log.info("stream continues", waited=round(self._clock.now().wall - self.since))
                    self.since = None
                return done

    def _begin(self, error: str, wall: float) -> None:
        if self.since is None:
            log.error("stream waits, and tries again", error=error)
            self.since = wall

    def _check(self) -> None:
        self._stop.check()
        if self._replaced.is_set():
            raise StoppedError

    def wait(self, seconds: float) -> None:
        """Pause, or less if a stop is requested or another process does the work."""
        start = self._clock.now()
        while not (self._stop.requested or self._replaced.is_set()):
            left = seconds - self._clock.now().since(start)
            if left <= 0:
                return
            time.sleep(min(_POLL_SECONDS, left))

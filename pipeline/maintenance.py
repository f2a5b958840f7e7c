"""Background maintenance of a stream: downsampling, analyses and vacuum.

It runs in its own thread, one task at a time, and is cancelled when the stream ends; the rest is done next time.
"""

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from ackscope.clock import Clock, Instant
from ackscope.errors import AckscopeError
from ackscope.log import get_logger
from ackscope.object_path import ObjectStorageError, Place
from pipeline import downsample
from pipeline.analysis.refresh import refresh, shifts
from pipeline.session import SPARK_ERRORS, cause
from pipeline.shard import ALL, Shard
from pipeline.side_by_side import side_by_side
from pipeline.stop import Stop, StoppedError
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

log = get_logger(__name__)

# From the end of one downsampling of hours and days to the next.
DOWNSAMPLE_SECONDS = 60.0

VACUUM_SECONDS = 300.0

# From the start to the first analyses, and the interval later; in between, the pause doubles.
ANALYSE_FIRST_SECONDS, ANALYSE_SECONDS = 300.0, 3600.0

# Between the analyses, only level shifts are detected: at most this often, and at most this share of the time.
SHIFTS_SECONDS, SHIFTS_SHARE = 300.0, 0.05

# Clusters, or groups of them, at the same time: the stream itself comes first.
_AT_ONCE = 2


class Maintenance:
    """The background thread, and when each task ran last.

    `analyse_every` are the seconds between two analyses, and before the first one; None: `ANALYSE_FIRST_SECONDS`, then
    longer and longer up to `ANALYSE_SECONDS`.
    """

    def __init__(
        self,
        spark: SparkSession,
        landing: Place,
        rollups: Rollups,
        stop: Stop,
        clock: Clock,
        analyse_every: float | None = None,
        shard: Shard = ALL,
    ) -> None:
        self._spark, self._rollups, self._stop, self._clock = spark, rollups, stop, clock
        self._shard = shard
        # A separate instance, because a cluster is for one thread at a time.
        self._landing = Landing(landing, clock)
        self._longest_pause = analyse_every or ANALYSE_SECONDS
        self._analysed_at, self._pause = clock.now(), analyse_every or ANALYSE_FIRST_SECONDS
        self._shifts_at, self._shifts_pause = clock.now(), SHIFTS_SECONDS
        self._downsampled: Instant | None = None
        self._vacuumed: Instant | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    @property
    def busy(self) -> bool:
        """Whether a task is running."""
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Stop at the next step and start nothing more."""
        self._ended = True

    def start_if_due(self) -> None:
        """Start a due task in the background."""
        if self.busy or not self._go_on() or not (_due(self._downsampled, self._clock, DOWNSAMPLE_SECONDS)):
            return
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            downsample.refresh(self._spark, self._rollups, self._clusters(), self._go_on, at_once=_AT_ONCE)
            if _due(self._analysed_at, self._clock, self._pause):
                self._analyse()
            elif _due(self._shifts_at, self._clock, self._shifts_pause):
                self._detect_shifts()
            if _due(self._vacuumed, self._clock, VACUUM_SECONDS):
                self._rollups.vacuum(self._shard)
                self._vacuumed = self._clock.now()
        except StoppedError:
            log.debug("maintenance cancelled")
        except ObjectStorageError as error:
            # The stream itself says that the storage is away.
            log.debug("maintenance failed, will be retried", error=str(error))
        except AckscopeError as error:
            if self._go_on():
                log.warning("maintenance failed, will be retried", error=str(error))
        except SPARK_ERRORS as error:
            if self._go_on():
                log.warning("maintenance failed, will be retried", error=cause(error))
        finally:
            self._downsampled = self._clock.now()

    def _analyse(self) -> None:
        # Recorded first, so that a failure is not retried immediately.
        self._analysed_at, self._pause = self._clock.now(), min(2 * self._pause, self._longest_pause)
        now = self._clock.now().wall
        self._each(lambda it: refresh(self._spark, self._landing, self._rollups, it, now, self._go_on))
        self._shifts_at = self._clock.now()

    def _detect_shifts(self) -> None:
        began = self._shifts_at = self._clock.now()
        self._each(lambda cluster: shifts(self._spark, self._rollups, cluster, began.wall, self._go_on))
        self._shifts_at = self._clock.now()
        self._shifts_pause = max(SHIFTS_SECONDS, self._shifts_at.since(began) / SHIFTS_SHARE)

    def _each(self, work: Callable[[str], None]) -> None:
        side_by_side(self._spark, self._clusters(), work, at_once=_AT_ONCE)

    def _clusters(self) -> list[str]:
        return [cluster for cluster in self._rollups.clusters() if cluster in self._shard]

    def _go_on(self) -> bool:
        return not self._stop.requested and not self._ended


def _due(last: Instant | None, clock: Clock, every: float) -> bool:
    return last is None or clock.now().since(last) >= every

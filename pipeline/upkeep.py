"""What a stream does beside its batches: hours and days, analyses, and files that nobody needs any more.

It runs in a thread of its own, one thing at a time, and is cut off when the stream ends: whatever is left undone is
done the next time.
"""

import logging
import threading
from pathlib import Path

from pyspark.sql import SparkSession

from ackscope.clock import Clock, Instant
from ackscope.errors import AckscopeError
from pipeline import coarse
from pipeline.analysis.refresh import refresh, shifts
from pipeline.session import SPARK_ERRORS, cause
from pipeline.stop import Stop, StoppedError
from pipeline.storage.landing import Landing
from pipeline.storage.rollups import Rollups

log = logging.getLogger(__name__)

COARSE_EVERY = 60.0
"""Seconds from the end of one refresh of hours and days to the next."""

SWEEP_EVERY = 300.0
"""Seconds."""

ANALYSE_FIRST, ANALYSE_EVERY = 300.0, 3600.0
"""Seconds from the start to the first analyses, and from these to the next; in between, the pause doubles."""

SHIFTS_EVERY, SHIFTS_SHARE = 300.0, 0.05
"""Between them, shifts alone are looked for: so many seconds apart, and at this share of the time at most."""


class Upkeep:
    """The thread, and when each thing was done last."""

    def __init__(self, spark: SparkSession, landing: Path, rollups: Rollups, stop: Stop, clock: Clock) -> None:
        self._spark, self._rollups, self._stop, self._clock = spark, rollups, stop, clock
        # One of its own: what a landing folder remembers is for one thread.
        self._landing = Landing(landing, clock)
        self._analysed, self._pause = clock.now(), ANALYSE_FIRST
        self._shifted, self._shifts_pause = clock.now(), SHIFTS_EVERY
        self._coarse: Instant | None = None
        self._swept: Instant | None = None
        self._thread: threading.Thread | None = None
        self._ended = False

    @property
    def busy(self) -> bool:
        """Whether it is at something."""
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Stop at the next step, and begin nothing more."""
        self._ended = True

    def look(self) -> None:
        """Begin what is due; returns at once."""
        if self.busy or not self._go_on() or not (_due(self._coarse, self._clock, COARSE_EVERY)):
            return
        self._thread = threading.Thread(target=self._work, name="upkeep", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for cluster in self._rollups.clusters():
                coarse.refresh(self._spark, self._rollups, cluster, self._go_on)
            if _due(self._analysed, self._clock, self._pause):
                self._analyse()
            elif _due(self._shifted, self._clock, self._shifts_pause):
                self._look_for_shifts()
            if _due(self._swept, self._clock, SWEEP_EVERY):
                with self._rollups.only_writer():
                    self._rollups.sweep()
                self._swept = self._clock.now()
        except StoppedError:
            log.debug("cut off; what is left is done the next time")
        except AckscopeError as error:
            if self._go_on():
                log.warning("hours, days and analyses wait for the next try: %s", error)
        except SPARK_ERRORS as error:
            if self._go_on():
                log.warning("hours, days and analyses wait for the next try: %s", cause(error))
        finally:
            self._coarse = self._clock.now()

    def _analyse(self) -> None:
        # Noted before, so that one that fails is not tried again at once.
        self._analysed, self._pause = self._clock.now(), min(2 * self._pause, ANALYSE_EVERY)
        for cluster in self._rollups.clusters():
            refresh(self._spark, self._landing, self._rollups, cluster, self._clock.now().wall, self._go_on)
        self._shifted = self._clock.now()

    def _look_for_shifts(self) -> None:
        began = self._shifted = self._clock.now()
        for cluster in self._rollups.clusters():
            shifts(self._spark, self._rollups, cluster, self._clock.now().wall, self._go_on)
        self._shifted = self._clock.now()
        self._shifts_pause = max(SHIFTS_EVERY, self._shifted.since(began) / SHIFTS_SHARE)

    def _go_on(self) -> bool:
        return not self._stop.wanted and not self._ended


def _due(last: Instant | None, clock: Clock, every: float) -> bool:
    return last is None or clock.now().since(last) >= every

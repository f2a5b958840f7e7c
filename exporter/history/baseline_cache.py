"""A thread that looks at the rollups now and then, so that neither a poll nor a scrape waits for a disk.

Whatever is missing or damaged there costs a line in the log and the bands concerned, never the exporter.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ackscope.baselines import NOT_YET, Band, Baselines, hour_of_week
from ackscope.clock import Clock, Instant
from ackscope.errors import DataError
from exporter.history.settings import HistorySettings
from exporter.history.status import PipelineLag, read_lag

log = logging.getLogger(__name__)

_TICK = 5.0
"""Seconds between two looks at how far the pipeline is behind; the bands change by the hour."""


@dataclass(frozen=True, slots=True)
class CachedBaselines:
    """What is known of one cluster.

    Attributes:
        files: that the bands were read from.
        scopes: what bands were made of -> how many of them there are.
    """

    baselines: Baselines
    files: tuple[str, ...]
    scopes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BaselineCacheStats:
    """What metrics tell.

    Attributes:
        lag: what the pipeline said last; None where it says nothing.
        clusters: by name, those whose bands were read.
    """

    lag: PipelineLag | None = None
    clusters: Mapping[str, CachedBaselines] = field(default_factory=dict)


class BaselineCache:
    """Holds the bands of the present hour of every cluster, and what the pipeline says of itself.

    Args:
        settings: where to look, and how often.
        clusters: their names.
        clock: says which hour it is.
    """

    def __init__(self, settings: HistorySettings, clusters: Iterable[str], clock: Clock) -> None:
        self._settings, self._clusters, self._clock = settings, tuple(clusters), clock
        self._counts = BaselineCacheStats()
        self._problems: dict[str, str] = {}
        self._refreshed_at: Instant | None = None
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="past", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End, after the look that is under way."""
        self._ending.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def apply(self, settings: HistorySettings, clusters: Iterable[str]) -> None:
        """Go by these settings from now on; the next look is at once."""
        if settings.rollups != self._settings.rollups:
            self._counts = BaselineCacheStats()
        self._settings, self._clusters, self._refreshed_at = settings, tuple(clusters), None
        self._wake.set()

    def of(self, cluster: str) -> Baselines | None:
        """What is usual in a cluster now; None where nothing was read of it."""
        known = self._counts.clusters.get(cluster)
        return known.baselines if known else None

    def counts(self) -> BaselineCacheStats:
        """What metrics tell."""
        return self._counts

    def refresh(self) -> None:
        """Look once: at the pipeline's own word every time, at bands when it is time for them."""
        settings, now = self._settings, self._clock.now()
        root = settings.rollups
        if root is None:
            self._counts = BaselineCacheStats()
            return
        lag = self._lag(root)
        clusters = self._counts.clusters
        if self._refreshed_at is None or now.since(self._refreshed_at) >= settings.every or self._hour_is_over(now):
            self._refreshed_at = now
            found = {name: self._bands(root, name, hour_of_week(now.wall)) for name in self._clusters}
            clusters = {name: known for name, known in found.items() if known is not None}
        if settings is self._settings:
            self._counts = BaselineCacheStats(lag, clusters)
        else:
            self._refreshed_at = None

    def _hour_is_over(self, now: Instant) -> bool:
        hour = hour_of_week(now.wall)
        return any(known.baselines.hour_of_week != hour for known in self._counts.clusters.values())

    def _lag(self, root: Path) -> PipelineLag | None:
        try:
            lag = read_lag(root)
        except DataError as error:
            self._say("lag", str(error))
            return None
        self._say("lag", "")
        return lag

    def _bands(self, root: Path, cluster: str, hour: int) -> CachedBaselines | None:
        """What is known of a cluster now: the same as before where its files are, or where they cannot be read."""
        # Loaded only where it is used: it brings Arrow with it.
        from exporter.history.bands import band_files, read_bands  # noqa: PLC0415  see above

        before = self._counts.clusters.get(cluster)
        try:
            files = band_files(root, cluster, hour)
            if before is None or before.files != files or before.baselines.hour_of_week != hour:
                baselines, files = read_bands(root, cluster, hour)
                scopes = Counter(it.scope if isinstance(it, Band) else NOT_YET for it in baselines.bands.values())
                before = CachedBaselines(baselines, files, scopes)
        except DataError as error:
            self._say(cluster, f"what is usual in cluster {cluster} is not known now: {error}")
            return before
        self._say(cluster, "")
        return before if before.files else None

    def _say(self, what: str, problem: str) -> None:
        """One line for a problem, and one for its end; not one a look."""
        before = self._problems.get(what, "")
        if problem and problem != before:
            log.warning("%s", problem)
        elif before and not problem:
            log.info("read again: %s", before)
        self._problems[what] = problem

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.refresh()
            except Exception:  # The boundary: a defect here must not end the looking; what was known stays.
                log.exception("looking at the rollups failed")
            self._wake.wait(_TICK)
            self._wake.clear()

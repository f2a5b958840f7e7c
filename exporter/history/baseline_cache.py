"""Background thread that reads the rollups, so that neither polls nor scrapes wait for a disk.

A missing or damaged file is logged, and its baselines are missing. The exporter keeps running.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ackscope.baselines import NOT_YET, Band, Baselines, hour_of_week
from ackscope.clock import Clock, Instant
from ackscope.errors import DataError
from ackscope.log import get_logger
from ackscope.object_path import Place
from exporter.history.settings import HistorySettings
from exporter.history.status import PipelineLag, read_lag

log = get_logger(__name__)

_TICK = 5.0
"""Seconds between reads of the pipeline's lag; baselines change by the hour."""


@dataclass(frozen=True, slots=True)
class CachedBaselines:
    """Baselines of one cluster.

    Attributes:
        baselines: the baselines of the current hour.
        files: files that they were read from.
        scopes: scope -> number of baselines.
    """

    baselines: Baselines
    files: tuple[str, ...]
    scopes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BaselineCacheStats:
    """Figures for metrics.

    Attributes:
        lag: last lag report of the pipeline; None if there is none.
        clusters: baselines of each cluster for which they were read.
    """

    lag: PipelineLag | None = None
    clusters: Mapping[str, CachedBaselines] = field(default_factory=dict)


class BaselineCache:
    """Holds the baselines of the current hour of every cluster, and the pipeline's lag.

    Args:
        settings: where and how often to read.
        clusters: cluster names.
        clock: tells which hour it is.
    """

    def __init__(self, settings: HistorySettings, clusters: Iterable[str], clock: Clock) -> None:
        self._settings, self._clusters, self._clock = settings, tuple(clusters), clock
        self._counts = BaselineCacheStats()
        self._problems: dict[str, str] = {}
        self._without_bands: frozenset[str] = frozenset()
        self._refreshed_at: Instant | None = None
        self._wake, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="past", daemon=True)

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the read in progress."""
        self._ending.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def apply(self, settings: HistorySettings, clusters: Iterable[str]) -> None:
        """Apply new settings and read at once."""
        if settings.rollups != self._settings.rollups:
            self._counts, self._without_bands = BaselineCacheStats(), frozenset()
        self._settings, self._clusters, self._refreshed_at = settings, tuple(clusters), None
        self._wake.set()

    def of(self, cluster: str) -> Baselines | None:
        """Baselines of a cluster for the current hour, empty if the pipeline has made none yet; None if not read."""
        known = self._counts.clusters.get(cluster)
        if known is None:
            return Baselines() if cluster in self._without_bands else None
        return known.baselines

    def counts(self) -> BaselineCacheStats:
        """Figures for metrics."""
        return self._counts

    def refresh(self) -> None:
        """Read the lag, and the baselines if they are due."""
        settings, now = self._settings, self._clock.now()
        root = settings.rollups
        if root is None:
            self._counts, self._without_bands = BaselineCacheStats(), frozenset()
            return
        lag = self._lag(root)
        clusters, without = self._counts.clusters, self._without_bands
        if self._refreshed_at is None or now.since(self._refreshed_at) >= settings.every or self._hour_is_over(now):
            self._refreshed_at = now
            found = {name: self._bands(root, name, hour_of_week(now.wall)) for name in self._clusters}
            clusters = {name: known for name, known in found.items() if known is not None and known.files}
            without = frozenset(name for name, known in found.items() if known is not None and not known.files)
        if settings is self._settings:
            self._counts, self._without_bands = BaselineCacheStats(lag, clusters), without
        else:
            self._refreshed_at = None

    def _hour_is_over(self, now: Instant) -> bool:
        hour = hour_of_week(now.wall)
        return any(known.baselines.hour_of_week != hour for known in self._counts.clusters.values())

    def _lag(self, root: Place) -> PipelineLag | None:
        try:
            lag = read_lag(root)
        except DataError as error:
            self._say("lag", str(error))
            return None
        self._say("lag", "")
        return lag

    def _bands(self, root: Place, cluster: str, hour: int) -> CachedBaselines | None:
        """Baselines of a cluster, without files if it has none; the previous ones if they cannot be read."""
        # Imported only if used: it loads Arrow.
        from exporter.history.bands import band_files, read_bands  # noqa: PLC0415  see above

        before = self._counts.clusters.get(cluster)
        try:
            files = band_files(root, cluster, hour)
            if before is None or before.files != files or before.baselines.hour_of_week != hour:
                baselines, files = read_bands(root, cluster, hour)
                scopes = Counter(it.scope if isinstance(it, Band) else NOT_YET for it in baselines.bands.values())
                before = CachedBaselines(baselines, files, scopes)
        except DataError as error:
            self._say(cluster, str(error))
            return before
        self._say(cluster, "")
        return before

    def _say(self, what: str, problem: str) -> None:
        """Log a problem when it appears and when it is resolved, not every time."""
        before = self._problems.get(what, "")
        if problem and problem != before:
            log.warning("history unavailable", source=what, error=problem)
        elif before and not problem:
            log.info("history available again", source=what)
        self._problems[what] = problem

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.refresh()
            except Exception:  # Boundary: a defect must not stop this thread; the previous baselines stay.
                log.exception("reading the rollups failed")
            self._wake.wait(_TICK)
            self._wake.clear()

"""Renders and caches the page `/metrics`: the snapshot part once per snapshot, the live part at every scrape.

When a snapshot arrives, the families of its cluster are encoded, and compressed in the formats that are being scraped.
A scrape adds the small part that changes between snapshots (ages, probes, findings) and sends the chunks unjoined.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from prometheus_client.core import Metric

from ackscope.clock import Clock, Instant
from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.selection import Selection
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.encode import END, EncodedFamily, Format, accepts_gzip, encode, negotiate_format, page_chunks
from exporter.exposition.execute import CollectorRun, Source, execute, merge_runs, report_metrics
from exporter.exposition.gzip_concat import GzipPrefix, compress_prefix, finish_member
from exporter.exposition.live_cache import LiveMetricsCache
from exporter.exposition.settings import MetricsSettings
from exporter.runtime.state import StateStore
from exporter.web.http import Request, Response

SelectedSource = Callable[[Selection], Iterable[Metric]]
"""Makes the metrics of the selected objects."""

IDLE_SECONDS = 300.0
"""Seconds without a scrape after which pages are no longer rendered in advance."""
LATE_SECONDS = 15.0
"""Seconds that scrapes give the render thread to catch up with a newer snapshot before they render it."""


@dataclass(frozen=True, slots=True)
class _SnapshotPage:
    """The part of a page made from snapshots.

    Attributes:
        generation: generation of the state that the page was made from.
        reports: encoded reports of its collectors.
        compressed: format -> gzip prefix, for formats that have been requested.
    """

    generation: int
    run: CollectorRun
    reports: list[EncodedFamily]
    compressed: dict[Format, GzipPrefix] = field(default_factory=dict)


class PageCache:
    """Renders and caches the page. Safe for concurrent scrapes and refreshes.

    The cache holds one generation, and briefly also the next one while it is rendered.

    Args:
        state: latest state of every cluster.
        top_k: selects the objects with their own series. Only this cache may use it.
        live: name -> source of metrics that change between snapshots.
        clock: measures the duration of the collectors.
        collectors: name -> collector of snapshot metrics.
        per_snapshot: name -> source of other metrics that change with a snapshot.
        per_selection: name -> the same, of selected objects only.
        per_scrape: name -> source that runs at every scrape, for ages.
    """

    def __init__(
        self,
        state: StateStore,
        top_k: TopK,
        live: Mapping[str, Source],
        clock: Clock,
        collectors: Mapping[str, Collector] = COLLECTORS,
        per_snapshot: Mapping[str, Source] | None = None,
        per_scrape: Mapping[str, Source] | None = None,
        per_selection: Mapping[str, SelectedSource] | None = None,
    ) -> None:
        self._state, self._top_k, self._clock = state, top_k, clock
        self._collectors, self._per_snapshot = collectors, per_snapshot or {}
        self._per_selection = per_selection or {}
        self._lock = threading.Lock()
        self._page: _SnapshotPage | None = None
        self._clusters: dict[str, tuple[Snapshot, CollectorRun]] = {}
        self._last_scrape = clock.now()
        self._outdated: tuple[int, Instant] = (-1, clock.now())
        self._last_gzip: dict[Format, Instant | None] = dict.fromkeys(Format)
        self._live_cache = LiveMetricsCache(live, per_scrape or {}, clock)

    def respond(self, request: Request) -> Response:
        """Return all metrics in the format and encoding that the request prefers."""
        form = negotiate_format(request.headers.get("accept", ""))
        page, now = self._from_snapshots(), self._clock.now()
        self._last_scrape = now
        live = self._live_part(page, form)
        compressed = (
            self._compress(page, form, now) if accepts_gzip(request.headers.get("accept-encoding", "")) else None
        )
        chunks = (
            (*page_chunks(page.run.families, form), *live) if compressed is None else finish_member(compressed, live)
        )
        return Response(
            b"",
            form.value,
            chunks=chunks,
            content_encoding="identity" if compressed is None else "gzip",
            headers=(("Vary", "Accept, Accept-Encoding"),),
        )

    def answers_at_once(self, request: Request) -> bool:
        """Whether `respond` would render nothing, wait for nothing, and take less than a change of threads."""
        form, page = negotiate_format(request.headers.get("accept", "")), self._page
        if page is None or self._late(page) or not self._live_cache.is_prerendered(form):
            return False
        return form in page.compressed or not accepts_gzip(request.headers.get("accept-encoding", ""))

    def text(self, form: Format = Format.TEXT) -> str:
        """Return the page as text, for callers in this process."""
        page = self._from_snapshots()
        return b"".join([*page_chunks(page.run.families, form), *self._live_part(page, form)]).decode()

    def refresh(self) -> None:
        """Render the snapshot part if it is outdated and there was a recent scrape."""
        with self._lock:
            now = self._clock.now()
            if now.since(self._last_scrape) > IDLE_SECONDS:
                self._page, self._clusters = None, {}
                return
            before = self._page
            if before is not None and before.generation == self._state.generation:
                return
            page = self._make()
            for form, last_used in self._last_gzip.items():
                if last_used is not None and now.since(last_used) <= IDLE_SECONDS:
                    page.compressed[form] = compress_prefix(page_chunks(page.run.families, form))
            self._page = page

    def tick(self) -> None:
        """Prerender the live part for the scrapes of the next second. Must be called once a second."""
        page, now = self._page, self._clock.now()
        if page is not None and now.since(self._last_scrape) <= IDLE_SECONDS:
            forms = [form for form, last_used in self._last_gzip.items() if last_used is not None]
            self._live_cache.prerender(page.reports, forms)

    def invalidate(self) -> None:
        """Discard the prerendered live part, so that the next scrape shows a change at once."""
        self._live_cache.invalidate()

    def apply(self, settings: MetricsSettings, collectors: Mapping[str, Collector] = COLLECTORS) -> None:
        """Apply new settings; the next page uses them."""
        with self._lock:
            self._top_k.apply(settings)
            self._collectors, self._page, self._clusters = collectors, None, {}
        self.invalidate()

    def _from_snapshots(self) -> _SnapshotPage:
        page = self._page
        if page is not None and not self._late(page):
            return page
        with self._lock:  # so that concurrent scrapes render it once
            page = self._page
            if page is None or self._late(page):
                page = self._page = self._make()
            return page

    def _late(self, page: _SnapshotPage) -> bool:
        if page.generation == self._state.generation:
            return False
        now, (generation, seen) = self._clock.now(), self._outdated
        if generation != page.generation:
            self._outdated = (page.generation, now)
            return False
        return now.since(seen) > LATE_SECONDS

    def _make(self) -> _SnapshotPage:
        generation = self._state.generation
        snapshots = self._state.snapshots()
        selection = self._top_k.select(snapshots)
        before, self._clusters = self._clusters, {}
        for snapshot in snapshots:
            cached = before.get(snapshot.cluster)
            if cached is None or cached[0] is not snapshot:
                cached = (snapshot, self._execute([snapshot], selection))
            self._clusters[snapshot.cluster] = cached
        runs = [run for _, run in self._clusters.values()] or [self._execute([], selection)]
        chosen: dict[str, Source] = {name: partial(source, selection) for name, source in self._per_selection.items()}
        run = merge_runs([*runs, execute({**self._per_snapshot, **chosen}, self._clock)])
        return _SnapshotPage(generation, run, encode(report_metrics(run.reports)))

    def _execute(self, snapshots: Sequence[Snapshot], selection: Selection) -> CollectorRun:
        return execute(collector_sources(snapshots, selection, self._collectors), self._clock)

    def _compress(self, page: _SnapshotPage, form: Format, now: Instant) -> GzipPrefix:
        self._last_gzip[form] = now
        compressed = page.compressed.get(form)
        if compressed is not None:
            return compressed
        with self._lock:
            if form not in page.compressed:
                page.compressed[form] = compress_prefix(page_chunks(page.run.families, form))
            return page.compressed[form]

    def _live_part(self, page: _SnapshotPage, form: Format) -> list[bytes]:
        """Return the live part of a page: metrics that change between snapshots, and the reports of collectors."""
        return [*self._live_cache.chunks(page.reports, form), *([END] if form is Format.OPENMETRICS else [])]


def collector_sources(
    snapshots: Sequence[Snapshot], selection: Selection, collectors: Mapping[str, Collector] = COLLECTORS
) -> dict[str, Source]:
    """Bind the collectors to `snapshots` and `selection`. Returns the sources by collector name."""
    return {name: partial(collector.collect, snapshots, selection) for name, collector in collectors.items()}

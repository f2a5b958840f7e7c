"""The text of `/metrics`, from memory: what comes with snapshots is made once a snapshot, the rest at every scrape.

The large part is written, and compressed for the formats that are scraped, when a snapshot arrives, and only the
families of its cluster; a scrape makes the small part that changes between snapshots (ages, probes, findings), and
sends the pieces as they are.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

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

IDLE_SECONDS = 300.0
"""Who has not scraped for so long is waited for no more: pages are made again once somebody asks."""
LATE_SECONDS = 15.0
"""After a scrape has seen that a newer snapshot waits, a refresh has so long; then a scrape does its work."""


@dataclass(frozen=True, slots=True)
class _SnapshotPage:
    """The part that comes from snapshots.

    Attributes:
        generation: of the state that it was made from.
        reports: how its collectors did, written.
        packed: format -> compressed; for the formats that were asked for.
    """

    generation: int
    execution: CollectorRun
    reports: list[EncodedFamily]
    compressed: dict[Format, GzipPrefix] = field(default_factory=dict)


class PageCache:
    """Makes the text; safe for several scrapes at once, and for refreshes beside them.

    It holds one generation, and for moments the one that is being made.

    Args:
        state: what is known.
        chooser: which objects get series of their own; used by this object only.
        live: name -> what makes the metrics that change between snapshots.
        clock: times the collectors.
        collectors: name -> what makes metrics of snapshots.
        rounds: name -> what makes metrics that change when a snapshot arrives, of something else than snapshots.
        moments: name -> what makes metrics of the moment of the scrape, ages: never made ahead.
    """

    def __init__(
        self,
        state: StateStore,
        chooser: TopK,
        live: Mapping[str, Source],
        clock: Clock,
        collectors: Mapping[str, Collector] = COLLECTORS,
        per_snapshot: Mapping[str, Source] | None = None,
        per_scrape: Mapping[str, Source] | None = None,
    ) -> None:
        self._state, self._chooser, self._clock = state, chooser, clock
        self._collectors, self._rounds = collectors, per_snapshot or {}
        self._lock = threading.Lock()
        self._page: _SnapshotPage | None = None
        self._clusters: dict[str, tuple[Snapshot, CollectorRun]] = {}
        self._last_scrape = clock.now()
        self._outdated: tuple[int, Instant] = (-1, clock.now())
        self._last_gzip: dict[Format, Instant | None] = dict.fromkeys(Format)
        self._live_cache = LiveMetricsCache(live, per_scrape or {}, clock)

    def answer(self, request: Request) -> Response:
        """All metrics of this moment, in the format and coding that the request wants."""
        form = negotiate_format(request.headers.get("accept", ""))
        made, now = self._from_snapshots(), self._clock.now()
        self._last_scrape = now
        live = self._live_part(made, form)
        compressed = self._pack(made, form, now) if accepts_gzip(request.headers.get("accept-encoding", "")) else None
        pieces = (
            (*page_chunks(made.execution.families, form), *live)
            if compressed is None
            else finish_member(compressed, live)
        )
        return Response(
            b"",
            form.value,
            chunks=pieces,
            content_encoding="identity" if compressed is None else "gzip",
            headers=(("Vary", "Accept, Accept-Encoding"),),
        )

    def text(self, form: Format = Format.TEXT) -> str:
        """The same as text, for who reads it here."""
        made = self._from_snapshots()
        return b"".join([*page_chunks(made.execution.families, form), *self._live_part(made, form)]).decode()

    def refresh(self) -> None:
        """Make the part of the newest snapshots, unless it is made, or nobody has asked for a while."""
        with self._lock:
            now = self._clock.now()
            if now.since(self._last_scrape) > IDLE_SECONDS:
                self._page, self._clusters = None, {}
                return
            before = self._page
            if before is not None and before.generation == self._state.generation:
                return
            made = self._make()
            for form, last_used in self._last_gzip.items():
                if last_used is not None and now.since(last_used) <= IDLE_SECONDS:
                    made.compressed[form] = compress_prefix(page_chunks(made.execution.families, form))
            self._page = made

    def tick(self) -> None:
        """Make what the scrapes of the next second need; to be called once a second."""
        made, now = self._page, self._clock.now()
        if made is not None and now.since(self._last_scrape) <= IDLE_SECONDS:
            forms = [form for form, last_used in self._last_gzip.items() if last_used is not None]
            self._live_cache.prerender(made.reports, forms)

    def invalidate(self) -> None:
        """Something has changed that the next scrape must tell; it makes all that tick makes anew."""
        self._live_cache.invalidate()

    def apply(self, settings: MetricsSettings, collectors: Mapping[str, Collector] = COLLECTORS) -> None:
        """Go on with other settings; the next page is made with them."""
        with self._lock:
            self._chooser.apply(settings)
            self._collectors, self._page, self._clusters = collectors, None, {}
        self.invalidate()

    def _from_snapshots(self) -> _SnapshotPage:
        made = self._page
        if made is not None and not self._late(made):
            return made
        with self._lock:  # two scrapes at once make it once
            made = self._page
            if made is None or self._late(made):
                made = self._page = self._make()
            return made

    def _late(self, made: _SnapshotPage) -> bool:
        if made.generation == self._state.generation:
            return False
        now, (generation, seen) = self._clock.now(), self._outdated
        if generation != made.generation:
            self._outdated = (made.generation, now)
            return False
        return now.since(seen) > LATE_SECONDS

    def _make(self) -> _SnapshotPage:
        generation = self._state.generation
        snapshots = self._state.snapshots()
        selection = self._chooser.select(snapshots)
        before, self._clusters = self._clusters, {}
        for snapshot in snapshots:
            known = before.get(snapshot.cluster)
            if known is None or known[0] is not snapshot:
                known = (snapshot, self._execute([snapshot], selection))
            self._clusters[snapshot.cluster] = known
        made = [execution for _, execution in self._clusters.values()] or [self._execute([], selection)]
        execution = merge_runs([*made, execute(self._rounds, self._clock)])
        return _SnapshotPage(generation, execution, encode(report_metrics(execution.reports)))

    def _execute(self, snapshots: Sequence[Snapshot], selection: Selection) -> CollectorRun:
        return execute(collector_sources(snapshots, selection, self._collectors), self._clock)

    def _pack(self, made: _SnapshotPage, form: Format, now: Instant) -> GzipPrefix:
        self._last_gzip[form] = now
        compressed = made.compressed.get(form)
        if compressed is not None:
            return compressed
        with self._lock:
            if form not in made.compressed:
                made.compressed[form] = compress_prefix(page_chunks(made.execution.families, form))
            return made.compressed[form]

    def _live_part(self, made: _SnapshotPage, form: Format) -> list[bytes]:
        """The end of a page: what changes between snapshots, and how every collector did."""
        return [*self._live_cache.pieces(made.reports, form), *([END] if form is Format.OPENMETRICS else [])]


def collector_sources(
    snapshots: Sequence[Snapshot], selection: Selection, collectors: Mapping[str, Collector] = COLLECTORS
) -> dict[str, Source]:
    """Every collector, ready to be run on `snapshots` and what was chosen of them."""
    return {name: partial(collector.collect, snapshots, selection) for name, collector in collectors.items()}

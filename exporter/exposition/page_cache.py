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
from exporter.exposition.cardinality.top_k import Chooser
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.collectors.contract import Collector, Selection
from exporter.exposition.encode import END, Format, Written, buffers, write
from exporter.exposition.execute import Execution, Source, execute, report_metrics, together
from exporter.exposition.gzip_concat import Packed, finish, pack
from exporter.exposition.live_cache import Present
from exporter.exposition.negotiate import accepts_gzip, format_for
from exporter.exposition.settings import MetricsSettings
from exporter.runtime.state import State
from exporter.web.http import Answer, Request

UNASKED_SECONDS = 300.0
"""Who has not scraped for so long is waited for no more: pages are made again once somebody asks."""
LATE_SECONDS = 15.0
"""After a scrape has seen that a newer snapshot waits, a refresh has so long; then a scrape does its work."""


@dataclass(frozen=True, slots=True)
class _Made:
    """The part that comes from snapshots.

    Attributes:
        generation: of the state that it was made from.
        reports: how its collectors did, written.
        packed: format -> compressed; for the formats that were asked for.
    """

    generation: int
    execution: Execution
    reports: list[Written]
    packed: dict[Format, Packed] = field(default_factory=dict)


class Exposition:
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
        state: State,
        chooser: Chooser,
        live: Mapping[str, Source],
        clock: Clock,
        collectors: Mapping[str, Collector] = COLLECTORS,
        rounds: Mapping[str, Source] | None = None,
        moments: Mapping[str, Source] | None = None,
    ) -> None:
        self._state, self._chooser, self._clock = state, chooser, clock
        self._collectors, self._rounds = collectors, rounds or {}
        self._lock = threading.Lock()
        self._made: _Made | None = None
        self._clusters: dict[str, tuple[Snapshot, Execution]] = {}
        self._asked = clock.now()
        self._outdated: tuple[int, Instant] = (-1, clock.now())
        self._packing: dict[Format, Instant | None] = dict.fromkeys(Format)
        self._present = Present(live, moments or {}, clock)

    def answer(self, request: Request) -> Answer:
        """All metrics of this moment, in the format and coding that the request wants."""
        form = format_for(request.headers.get("accept", ""))
        made, now = self._from_snapshots(), self._clock.now()
        self._asked = now
        live = self._of_now(made, form)
        packed = self._pack(made, form, now) if accepts_gzip(request.headers.get("accept-encoding", "")) else None
        pieces = (*buffers(made.execution.families, form), *live) if packed is None else finish(packed, live)
        return Answer(
            b"",
            form.value,
            more=pieces,
            coding="identity" if packed is None else "gzip",
            headers=(("Vary", "Accept, Accept-Encoding"),),
        )

    def text(self, form: Format = Format.TEXT) -> str:
        """The same as text, for who reads it here."""
        made = self._from_snapshots()
        return b"".join([*buffers(made.execution.families, form), *self._of_now(made, form)]).decode()

    def refresh(self) -> None:
        """Make the part of the newest snapshots, unless it is made, or nobody has asked for a while."""
        with self._lock:
            now = self._clock.now()
            if now.since(self._asked) > UNASKED_SECONDS:
                self._made, self._clusters = None, {}
                return
            before = self._made
            if before is not None and before.generation == self._state.generation:
                return
            made = self._make()
            for form, asked in self._packing.items():
                if asked is not None and now.since(asked) <= UNASKED_SECONDS:
                    made.packed[form] = pack(buffers(made.execution.families, form))
            self._made = made

    def tick(self) -> None:
        """Make what the scrapes of the next second need; to be called once a second."""
        made, now = self._made, self._clock.now()
        if made is not None and now.since(self._asked) <= UNASKED_SECONDS:
            forms = [form for form, asked in self._packing.items() if asked is not None]
            self._present.make_ahead(made.reports, forms)

    def forget(self) -> None:
        """Something has changed that the next scrape must tell; it makes all that tick makes anew."""
        self._present.forget()

    def apply(self, settings: MetricsSettings, collectors: Mapping[str, Collector] = COLLECTORS) -> None:
        """Go on with other settings; the next page is made with them."""
        with self._lock:
            self._chooser.apply(settings)
            self._collectors, self._made, self._clusters = collectors, None, {}
        self.forget()

    def _from_snapshots(self) -> _Made:
        made = self._made
        if made is not None and not self._late(made):
            return made
        with self._lock:  # two scrapes at once make it once
            made = self._made
            if made is None or self._late(made):
                made = self._made = self._make()
            return made

    def _late(self, made: _Made) -> bool:
        if made.generation == self._state.generation:
            return False
        now, (generation, seen) = self._clock.now(), self._outdated
        if generation != made.generation:
            self._outdated = (made.generation, now)
            return False
        return now.since(seen) > LATE_SECONDS

    def _make(self) -> _Made:
        generation = self._state.generation
        snapshots = self._state.snapshots()
        selection = self._chooser.choose(snapshots)
        before, self._clusters = self._clusters, {}
        for snapshot in snapshots:
            known = before.get(snapshot.cluster)
            if known is None or known[0] is not snapshot:
                known = (snapshot, self._execute([snapshot], selection))
            self._clusters[snapshot.cluster] = known
        made = [execution for _, execution in self._clusters.values()] or [self._execute([], selection)]
        execution = together([*made, execute(self._rounds, self._clock)])
        return _Made(generation, execution, write(report_metrics(execution.reports)))

    def _execute(self, snapshots: Sequence[Snapshot], selection: Selection) -> Execution:
        return execute(collector_sources(snapshots, selection, self._collectors), self._clock)

    def _pack(self, made: _Made, form: Format, now: Instant) -> Packed:
        self._packing[form] = now
        packed = made.packed.get(form)
        if packed is not None:
            return packed
        with self._lock:
            if form not in made.packed:
                made.packed[form] = pack(buffers(made.execution.families, form))
            return made.packed[form]

    def _of_now(self, made: _Made, form: Format) -> list[bytes]:
        """The end of a page: what changes between snapshots, and how every collector did."""
        return [*self._present.pieces(made.reports, form), *([END] if form is Format.OPENMETRICS else [])]


def collector_sources(
    snapshots: Sequence[Snapshot], selection: Selection, collectors: Mapping[str, Collector] = COLLECTORS
) -> dict[str, Source]:
    """Every collector, ready to be run on `snapshots` and what was chosen of them."""
    return {name: partial(collector.collect, snapshots, selection) for name, collector in collectors.items()}

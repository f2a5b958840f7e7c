"""The whole way of what was read: state, diagnosis and landing, then `/metrics`, the API, a report and a bundle."""

import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import orjson
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from ackscope.clock import Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Snapshot
from ackscope.tables import LANDING
from bench.fuzz.cases import PromiseBroken, one_line
from bench.fuzz.recordings import HOST, PROMETHEUS
from exporter.api.bundle import judge, unpack_bundle
from exporter.api.columns import LISTS
from exporter.api.object_series import SERIES_LISTS
from exporter.broker.families import POLLED, PUBLISHES
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice
from exporter.broker.queue_reader import QueueBudget
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import assemble, joined_parts, to_part
from exporter.commands.diagnose import terminal_report
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.encode import Format
from exporter.exposition.live import findings, polls, queue_ages
from exporter.exposition.page_cache import PageCache
from exporter.exposition.settings import MetricsSettings
from exporter.landing.sink import LandingSink
from exporter.probes_host.metrics import ProbeMetrics
from exporter.routes import RouteContext, make_routes
from exporter.runtime.ingest import Ingest
from exporter.runtime.reloader import ReloadResult
from exporter.runtime.state import StateStore
from exporter.settings import ExporterSettings
from exporter.web.http import Request, Response, Routes
from pipeline.storage.file_stats import read_stats

CLUSTER = "shop"
BEGAN = Instant(wall=1_800_000_000.0, mono=5000.0)

_BUDGET = QueueBudget(share=1.0, min_interval=5.0, totals_interval=5.0, details_share=0.5)
_FEW = {name: 2 for name in MetricsSettings.model_fields if name.startswith("max_")}
_PARSED_EVERY, _BUNDLED_EVERY, _READ_EVERY = 40, 4, 8
"""The page is parsed by the client library, a bundle made, and landing files read in every so many cases: these take
longer than everything else.
"""


@dataclass
class CaseClock:
    """A clock that a case sets."""

    seconds: float = 0.0

    def now(self) -> Instant:
        """`seconds` after the start of all cases."""
        return Instant(wall=BEGAN.wall + self.seconds, mono=BEGAN.mono + self.seconds)


class ClusterReading:
    """Reads one cluster again and again with the real clients, as the poller does, but family by family.

    Args:
        clock: dates the readings.
        sources: what is read.
        stepwise: whether the queues are read in steps within a budget, as by the poller, or at once, as by a command.
    """

    def __init__(
        self, clock: CaseClock, sources: SourceChoice = SourceChoice.MANAGEMENT, *, stepwise: bool = False
    ) -> None:
        self._clock, self._stepwise = clock, stepwise
        metrics = None
        if sources is not SourceChoice.MANAGEMENT:
            host = None if sources is SourceChoice.PROMETHEUS else "mq"
            metrics = MetricsReader(PrometheusSettings(urls=(PROMETHEUS,)), sources, host, clock)
        self._reader = BrokerReader(ManagementSettings(url=HOST, timeout=5.0), clock, metrics=metrics)
        self._parts: dict[str, Part[Any]] = {}

    def start_with(self, snapshot: Snapshot) -> None:
        """Take the parts of a snapshot as what was read before."""
        self._parts = dict(snapshot.parts)

    def snapshot(self, families: Collection[str] = tuple(POLLED)) -> Snapshot:
        """Read families once. What cannot be read keeps its last value, with the error."""
        for family in (name for name in POLLED if name in families and name in self._reader.families):
            before = self._parts.get(family, Part())
            try:
                self._parts[family] = self._read(family) or before
            except BrokerError as error:
                one_line(str(error), f"the error of {family}")
                self._parts[family] = replace(before, error=str(error))
        joined, prometheus = joined_parts(self._reader, self._parts)
        return assemble(CLUSTER, self._clock.now(), joined, prometheus, self._parts.get(PUBLISHES))

    def close(self) -> None:
        """Close the clients."""
        self._reader.close()

    def _read(self, family: str) -> Part[Any] | None:
        if family != "queues":
            return to_part(self._reader.read(family))
        if not self._stepwise:
            return to_part(self._reader.read_queues_once(1.0))
        reading = self._reader.step_queues(_BUDGET)
        return None if reading is None else to_part(reading)


class WholeWay:
    """Shows snapshots in every form, with fresh state for each case.

    Args:
        clock: the time of the case.
    """

    def __init__(self, clock: CaseClock) -> None:
        self._clock = clock
        memory = Path("/dev/shm")  # noqa: S108  files of a case, in memory: a disk would be the slowest part
        self._folder = Path(tempfile.mkdtemp(prefix="ackscope-fuzz-", dir=memory if memory.is_dir() else None))
        self._probes = ProbeMetrics()

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def show(self, snapshots: Sequence[Snapshot], variety: int) -> Routes:
        """Ingest snapshots, each at its time, and check everything that is made of them.

        Args:
            snapshots: of one cluster, oldest first.
            variety: decides limits, and which of the slower checks are made.

        Returns:
            the routes of an exporter that has this state.

        Raises:
            PromiseBroken: something is not as promised.
            Exception: a defect.
        """
        limits = _FEW if variety % 2 else {}
        settings = ExporterSettings.model_validate(
            {
                "clusters": {CLUSTER: {"management": {"url": HOST}}},
                "metrics": {"names": MetricNames.BOTH, "detailed": True, **limits},
                "landing": {"directory": self._folder, "max_channels": 2 if limits else 1000},
            }
        )
        state = StateStore([CLUSTER])
        sink = LandingSink(self._folder, settings.landing, settings.thresholds.own_prefixes, self._clock)
        ingest = Ingest(settings, state, self._probes, sink, self._clock)
        page = self._page(state, settings)
        for snapshot in snapshots:
            self._clock.seconds = snapshot.taken.mono - BEGAN.mono
            ingest.on_snapshot(snapshot)
            if snapshot is not snapshots[0]:
                self._metrics(page, parsed=variety % _PARSED_EVERY == 0)
        self._landed(sink, read=variety % _READ_EVERY == 0)
        routes = make_routes(
            RouteContext(
                state=state,
                exposition=page,
                status=lambda: None,
                probe_page=lambda _: Response(b"no probes\n"),
                reload=lambda: ReloadResult(ok=True, line="nothing to reload"),
                clock=self._clock,
            )
        )
        self._api(routes, snapshots[-1])
        if variety % _BUNDLED_EVERY == 0:
            self._bundle(routes)
        return routes

    def _page(self, state: StateStore, settings: ExporterSettings) -> PageCache:
        return PageCache(
            state,
            TopK(settings.metrics),
            {"verdicts": lambda: findings.collect(state.clusters(), settings.metrics.limits)},
            self._clock,
            collectors_for(settings.metrics.names, with_detailed=True),
            per_snapshot={"polls": lambda: polls.counts(state.clusters(), {})},
            per_scrape={"ages": lambda: polls.ages(state.clusters(), {}, self._clock.now())},
            per_selection={"queue_ages": lambda selection: queue_ages.collect(state.clusters(), selection)},
        )

    def _metrics(self, page: PageCache, *, parsed: bool) -> None:
        """The page has each series once, and no collector failed."""
        page.refresh()
        text = page.text()
        series = [line.rpartition(" ")[0] for line in text.split("\n") if line and line[0] != "#"]
        if len(set(series)) < len(series):
            twice = next(name for number, name in enumerate(series) if name in series[:number])
            raise PromiseBroken(f"/metrics has a series twice: {twice[:200]}")
        if parsed:
            for family in text_string_to_metric_families(page.text(Format.OPENMETRICS)):  # type: ignore[no-untyped-call]
                if not family.name:
                    raise PromiseBroken("/metrics has a family without a name")

    def _landed(self, sink: LandingSink, *, read: bool) -> None:
        """The rows are written, none is refused by its table, and the pipeline accepts the files."""
        sink.writer.flush()
        counts = sink.writer.counts()
        if counts.errors or any(kind == "contract" for _, kind in counts.dropped):
            raise PromiseBroken("landing rows do not fit their table")
        for path in self._folder.glob("*/*/*/*.parquet"):
            if read:
                table, day = LANDING[path.parents[2].name], date.fromisoformat(path.parent.name.removeprefix("date="))
                if read_stats(path, table, day, self._clock.now().wall).misdated:
                    raise PromiseBroken(f"{table.name} has misdated rows")
            path.unlink()

    def _api(self, routes: Routes, latest: Snapshot) -> None:
        """Every path of the API answers with JSON."""
        for path in ("findings", "triage", "probes", "vitals", "snapshot"):
            _json(routes, f"/api/v1/{path}", 200, {})
        for name, each in LISTS.items():
            _json(routes, "/api/v1/columns", 200, {"list": name, "columns": ",".join(each.names)})
        for family, kind in (("queues", "queue"), ("channels", "channel"), ("nodes", "node")):
            objects = latest.parts[family].value or ()
            for it in (*objects[:2], *objects[-1:]):
                vhost = {"vhost": it.vhost or ""} if kind == "queue" else {}
                _json(routes, "/api/v1/series", 200, {"kind": kind, "name": it.name or "", **vhost})
                if kind == "queue":
                    _json(routes, "/api/v1/queue", (200, 400), {"vhost": it.vhost or "", "queue": it.name or ""})
            if family in SERIES_LISTS:
                names = [[it.vhost, it.name] if kind == "queue" else it.name for it in objects[:300]]
                _json(routes, "/api/v1/trends", (200, 400), {"list": family, "objects": orjson.dumps(names).decode()})

    def _bundle(self, routes: Routes) -> None:
        """Our own bundle can be read, and gives the same diagnosis as a report for a terminal."""
        packed = routes["/api/v1/bundle"].handle(Request({"cluster": CLUSTER}))
        if packed.status != 200:
            raise PromiseBroken(f"/api/v1/bundle answers {packed.status}: {packed.body[:200]!r}")
        seen = unpack_bundle(packed.body)
        report = terminal_report(seen, judge(seen), everything=True)
        if "Traceback" in report:
            raise PromiseBroken("the report has a traceback")


def _json(routes: Routes, path: str, status: int | tuple[int, ...], query: dict[str, str]) -> None:
    answered = routes[path].handle(Request(query))
    expected = status if isinstance(status, tuple) else (status,)
    if answered.status not in expected:
        raise PromiseBroken(f"{path} answers {int(answered.status)}: {answered.body[:200]!r}")
    if answered.status == 200:
        orjson.loads(b"".join((answered.body, *answered.chunks)))
    else:
        one_line(answered.body.decode().removesuffix("\n"), path)


def later(snapshot: Snapshot, seconds: float) -> Snapshot:
    """Return a snapshot with the same answers, read some seconds later."""
    parts: dict[str, Any] = {
        name: replace(part, at=None if part.at is None else _after(part.at, seconds))
        for name, part in snapshot.parts.items()
    }
    return replace(snapshot, taken=_after(snapshot.taken, seconds), **parts)


def _after(at: Instant, seconds: float) -> Instant:
    return Instant(wall=at.wall + seconds, mono=at.mono + seconds)

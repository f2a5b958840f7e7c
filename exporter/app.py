"""Wires the exporter together. Only this module knows all its parts."""

import threading
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from operator import attrgetter
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from ackscope.clock import Clock
from ackscope.errors import ConfigError
from ackscope.log import get_logger
from ackscope.snapshot import Snapshot
from diagnosis.text import MANAGEMENT, Cluster
from exporter.delivery.delivery import FindingDelivery
from exporter.discovery.kubernetes import KubernetesDiscovery
from exporter.discovery.settings import KubernetesSettings
from exporter.exposition.cardinality.top_k import TopK
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.execute import Source
from exporter.exposition.live import (
    confirming,
    delivery,
    discovery,
    findings,
    history,
    landing,
    otlp,
    outcomes,
    polls,
    process,
    queue_ages,
    reloads,
)
from exporter.exposition.page_cache import PageCache
from exporter.exposition.render_thread import RenderThread
from exporter.history.baseline_cache import BaselineCache
from exporter.otlp.sender import OtlpSender
from exporter.polling.poller import PollerStats
from exporter.probes_host.host import ProbeHost, amqp_targets, targets_document
from exporter.probes_host.metrics import ProbeMetrics
from exporter.probes_host.ondemand_page import OnDemandProbePage
from exporter.probes_host.process import SupervisorHooks
from exporter.routes import RouteContext, is_ready, make_routes
from exporter.runtime.ingest import Ingest
from exporter.runtime.pollers import PollerRegistry
from exporter.runtime.reloader import Reloader, ReloadResult
from exporter.runtime.state import ClusterState, StateStore
from exporter.settings import ExporterSettings, parse_listen
from exporter.targets.page import TargetPage
from exporter.triage.store import TriageStore
from exporter.web.config import WebConfig
from exporter.web.http import Request, Response
from exporter.web.server import HttpServer

if TYPE_CHECKING:
    from exporter.landing.sink import LandingSink

log = get_logger(__name__)

_STOP_SECONDS = 4.0
_FIXED = ("listen", "allowed_hosts", "web_config", "landing.directory", "landing.spool", "triage.file")
"""Keys that are read at startup only."""
_STALLED_SECONDS = 120.0
"""A poller without a new snapshot for this many seconds plus ten poll intervals is considered stalled."""


class App:
    """One exporter.

    Args:
        settings: validated settings.
        clock: shared by all parts.
        reread: reads and validates the settings file again; None disables reloads.

    Attributes:
        routes: path -> route, as served.

    Raises:
        UsageError: the listen address cannot be used.
        ConfigError: a file named in the settings has disappeared since they were validated.
    """

    def __init__(
        self, settings: ExporterSettings, clock: Clock, reread: Callable[[], ExporterSettings] | None = None
    ) -> None:
        self._filed = self._settings = self._started = settings
        self._clock = clock
        self._state = StateStore(settings.clusters)
        self._metrics = ProbeMetrics()
        self._landing = _lander(settings, clock)
        self._discovery = KubernetesDiscovery(settings.discovery.kubernetes, self._configured, self._discovered, clock)
        known = self._known_clusters(settings)
        self._triage = TriageStore(settings.triage.file, known)
        self._delivery = FindingDelivery(settings.delivery, known, self._triage, self._cluster, clock)
        self._baselines = BaselineCache(settings.history, settings.clusters, clock)
        self._ingest = Ingest(settings, self._state, self._metrics, self._landing, clock, self._baselines.of)
        self._pollers = PollerRegistry(settings, clock, self._on_snapshot, self._latest, self._state.put_past)
        hooks = SupervisorHooks(on_batch=self._ingest.on_batch, on_start=self._metrics.restarted)
        self._probe_host = ProbeHost(settings, hooks, clock)
        self._reloader = Reloader(reread or _nothing_to_read, self._change, clock)
        top_k, collectors = TopK(settings.metrics), _collectors(settings)
        self._page_cache = PageCache(
            self._state,
            top_k,
            self._live_sources(),
            clock,
            collectors,
            per_selection={"queue_ages": lambda selection: queue_ages.collect(self._state.clusters(), selection)},
            **self._polling_sources(),
        )
        self._otlp = OtlpSender(settings.otlp, self._page_cache.text, settings.listen, clock)
        self._render_thread = RenderThread(self._page_cache.refresh, clock, self._page_cache.tick)
        self._targets = TargetPage(settings.modules, settings.metrics, clock)
        parts = RouteContext(
            state=self._state,
            exposition=self._page_cache,
            status=self._probe_host.status,
            probe_page=self._probe_page,
            reload=self.reload,
            clock=clock,
            thresholds=lambda: self._settings.thresholds,
            baselines=self._baselines.of,
            management=self._management,
            triage=self._triage,
            discovery=lambda: self._discovery.status(),  # noqa: PLW0108  a reload replaces it
        )
        web = WebConfig.load(settings.web_config) if settings.web_config else None
        self.routes = make_routes(parts)
        self._server = HttpServer(parse_listen(settings.listen), self.routes, web, allowed_hosts=settings.allowed_hosts)

    @property
    def url(self) -> str:
        """The URL that the exporter serves."""
        return self._server.url

    def start(self) -> None:
        """Start every part."""
        if self._landing is not None:
            self._landing.writer.start()
        parts = (
            *(self._baselines, self._render_thread, self._delivery, self._otlp),
            *(self._pollers, self._probe_host, self._server, self._discovery),
        )
        for part in parts:
            part.start()
        log.info("serving", url=self.url)

    def stop(self) -> None:
        """Stop all producers in parallel, then flush the landing files. Takes 5 s at most, usually 1 s."""
        until = self._clock.now().mono + _STOP_SECONDS
        self._discovery.stop()
        self._reloader.close(_STOP_SECONDS / 4)
        parts = (
            *(self._pollers, self._probe_host, self._server, self._render_thread),
            *(self._baselines, self._delivery, self._otlp),
        )
        threads = [threading.Thread(target=part.stop, daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - self._clock.now().mono))
        if self._landing is not None:
            self._landing.writer.stop(max(1.0, until - self._clock.now().mono))

    def _management(self, cluster: str) -> str:
        """Return the management URL that the suggested commands of findings use."""
        watched = self._settings.clusters.get(cluster)
        known = watched.management if watched is not None else None
        return MANAGEMENT if known is None else known.address().url

    def _cluster(self, name: str) -> Cluster:
        """Return what the text of findings names of a cluster."""
        latest = self._latest(name)
        return Cluster.of(latest, self._management(name))

    def ready(self) -> bool:
        """Whether every cluster has been polled at least once, successfully or not."""
        return is_ready(self._state)

    def is_healthy(self) -> bool:
        """Whether every poller still produces snapshots, even of unreachable brokers. The systemd watchdog uses it."""
        now, longest = self._clock.now(), _STALLED_SECONDS + 10 * self._settings.poll.interval
        known = [state.snapshot for state in self._state.clusters().values()]
        return all(snapshot is None or now.since(snapshot.taken) < longest for snapshot in known)

    def reload(self) -> ReloadResult:
        """Read the configuration again and apply it. If it is invalid, the current settings stay in force."""
        try:
            return self._reloader.reload()
        finally:
            self._page_cache.invalidate()

    def _change(self, filed: ExporterSettings) -> str:
        """Apply new settings of the file, with the discovered clusters added. Returns a summary of what changed.

        Parts whose settings did not change keep running.

        Raises:
            ConfigError: a file named in the settings cannot be read; nothing has changed.
        """
        settings = self._with_discovered(filed)
        change, document = self._pollers.plan(settings), targets_document(settings)
        before, self._settings, self._filed = self._settings, settings, filed
        # This order keeps data of a replaced broker out of the state of the new one.
        self._pollers.stop_replaced(change)
        self._state.set_clusters(settings.clusters, change.reset)
        self._ingest.apply(settings)
        self._baselines.apply(settings.history, settings.clusters)
        self._delivery.apply(settings.delivery, self._known_clusters(settings))
        if settings.otlp != before.otlp:
            self._otlp.apply(settings.otlp)
        self._pollers.start_created(change)
        probes_restarted = self._probe_host.change(settings, document)
        for name in amqp_targets(before).keys() - amqp_targets(settings).keys():
            self._metrics.forget(name)
        if (settings.modules, settings.metrics) != (before.modules, before.metrics):
            self._targets = TargetPage(settings.modules, settings.metrics, self._clock)
        self._page_cache.apply(settings.metrics, _collectors(settings))
        self._rediscover(settings.discovery.kubernetes)
        later = [key for key in _FIXED if attrgetter(key)(settings) != attrgetter(key)(self._started)]
        summary = [str(change), "probes restarted" if probes_restarted else "probes unchanged"]
        if later:
            summary.append(f"needs a restart, not applied: {', '.join(later)}")
        return "; ".join(summary)

    def _with_discovered(self, filed: ExporterSettings) -> ExporterSettings:
        """Add the discovered clusters. A configured one of the same name takes precedence."""
        found = self._discovery.clusters if filed.discovery.kubernetes.enabled else {}
        added = {name: it for name, it in found.items() if name not in filed.clusters}
        return filed.model_copy(update={"clusters": {**filed.clusters, **added}})

    def _known_clusters(self, settings: ExporterSettings) -> Collection[str] | None:
        """Names of all clusters; None while more may be discovered."""
        wanted, running = settings.discovery.kubernetes, self._discovery
        complete = not wanted.enabled or (running.complete and running.settings == wanted)
        return settings.clusters if complete else None

    def _configured(self) -> Collection[str]:
        return self._filed.clusters

    def _discovered(self) -> bool:
        try:
            return self._reloader.reapply(lambda: self._change(self._filed))
        finally:
            self._page_cache.invalidate()

    def _rediscover(self, wanted: KubernetesSettings) -> None:
        before = self._discovery
        if wanted == before.settings:
            before.look_again()
            return
        before.stop()
        self._discovery = KubernetesDiscovery(wanted, self._configured, self._discovered, self._clock, before)
        self._discovery.start()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        self._ingest.on_snapshot(snapshot)
        known = self._state.clusters().get(snapshot.cluster)
        if known is not None and known.verdict is not None:
            self._triage.observe(known.verdict, self._clock.now())
            self._delivery.observe(known.verdict)
        self._render_thread.wake()

    def _probe_page(self, request: Request) -> Response:
        """Serve `/probe`: either a probe of a configured cluster, or a one-off read of a broker through a module."""
        if "module" in request.query and "probe" in request.query:
            return Response(b"probe= and module= exclude each other; give one\n", status=HTTPStatus.BAD_REQUEST)
        if "module" in request.query:
            return self._targets.respond(request)
        return OnDemandProbePage(tuple(self._settings.clusters), self._probe_host.ondemand).respond(request)

    def _latest(self, cluster: str) -> Snapshot | None:
        known = self._state.clusters().get(cluster)
        return known.snapshot if known else None

    def _polling_sources(self) -> dict[str, dict[str, Source]]:
        """Metrics of the pollers: counters made with the page, ages made at every scrape from the same snapshots."""
        shown: list[dict[str, ClusterState]] = [{}]  # replaced as a whole: scrapes read it concurrently

        def counts() -> list[Metric]:
            states = self._state.clusters()
            shown[0] = {name: state.latest_only() for name, state in states.items()}
            return polls.counts(states, self._polled())

        return {
            "per_snapshot": {"polls": counts},
            "per_scrape": {"ages": lambda: polls.ages(shown[0], self._polled(), self._clock.now())},
        }

    def _polled(self) -> dict[str, PollerStats]:
        return {name: poller.stats for name, poller in self._pollers.pollers.items()}

    def _live_sources(self) -> dict[str, Source]:
        state, clock = self._state, self._clock
        return {
            "verdicts": lambda: findings.collect(
                state.clusters(), self._settings.metrics.limits, self._triage.of, clock.now().wall
            ),
            "outcomes": lambda: outcomes.collect(state.clusters(), clock.now()),
            "confirming": lambda: confirming.collect(state.clusters(), clock.now()),
            "probes": self._metrics.registry.collect,
            "process": lambda: process.collect(self._probe_host.status()),
            "discovery": lambda: discovery.collect(self._discovery.status()),
            "reloads": lambda: reloads.collect(self._reloader.status),
            "landing": lambda: landing.collect(self._landing.writer.counts() if self._landing else None),
            "delivery": lambda: delivery.collect(self._delivery.stats(), clock.now()),
            "otlp": lambda: otlp.collect(self._otlp.stats, clock.now()),
            "history": lambda: history.collect(self._baselines.counts(), clock.now()),
        }


def _lander(settings: ExporterSettings, clock: Clock) -> "LandingSink | None":
    if settings.landing.directory is None:
        return None
    # Imported only if used: it loads Arrow.
    from exporter.landing.sink import LandingSink  # noqa: PLC0415  see above

    return LandingSink(settings.landing.directory, settings.landing, settings.thresholds.own_prefixes, clock)


def _collectors(settings: ExporterSettings) -> Mapping[str, Collector]:
    return collectors_for(settings.metrics.names, with_detailed=settings.metrics.detailed)


def _nothing_to_read() -> ExporterSettings:
    raise ConfigError("there is no file to reload; start with --config.file FILE")

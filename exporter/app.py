"""The exporter put together: the only place that knows all its parts."""

import logging
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from operator import attrgetter
from typing import TYPE_CHECKING

from prometheus_client.core import Metric

from ackscope.clock import Clock
from ackscope.errors import ConfigError
from ackscope.snapshot import Snapshot
from exporter.exposition.cardinality.top_k import Chooser
from exporter.exposition.collectors.contract import Collector
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.execute import Source
from exporter.exposition.live import confirming, history, landing, outcomes, polls, process, reloads, verdicts
from exporter.exposition.page_cache import Exposition
from exporter.exposition.render_thread import Refresher
from exporter.history.baseline_cache import Past
from exporter.polling.poller import PollerStats
from exporter.probes_host.host import Probing, amqp_of, targets_of
from exporter.probes_host.metrics import ProbeMetrics
from exporter.probes_host.ondemand_page import ProbePage
from exporter.probes_host.process import Hooks
from exporter.routes import Parts, is_ready, make_routes
from exporter.runtime.ingest import Intake
from exporter.runtime.pollers import Watch
from exporter.runtime.reloader import Reloaded, Reloads
from exporter.runtime.state import ClusterState, State
from exporter.settings import ExporterSettings, parse_listen
from exporter.targets.page import TargetPage
from exporter.web.config import WebConfig
from exporter.web.http import Answer, Request
from exporter.web.server import Server

if TYPE_CHECKING:
    from exporter.landing.sink import Lander

log = logging.getLogger(__name__)

_STOP_SECONDS = 4.0
_FIXED = ("listen", "web_config", "landing.directory")
"""Keys that are read at the start only."""
_STILL_SECONDS = 120.0
"""A poller that handed out nothing for so long, and ten intervals on top, does not move any more."""


class App:
    """One exporter.

    Args:
        settings: already checked.
        clock: of all its parts.
        reread: reads and checks the file of the settings again; without it there is nothing to reload.

    Attributes:
        routes: the paths that it serves.

    Raises:
        UsageError: it cannot listen where it should.
        ConfigError: a file of the settings went away since they were checked.
    """

    def __init__(
        self, settings: ExporterSettings, clock: Clock, reread: Callable[[], ExporterSettings] | None = None
    ) -> None:
        self._settings = self._started = settings
        self._clock = clock
        self._state = State(settings.clusters)
        self._metrics = ProbeMetrics()
        self._landing = _lander(settings, clock)
        self._past = Past(settings.history, settings.clusters, clock)
        self._intake = Intake(settings, self._state, self._metrics, self._landing, clock, self._past.of)
        self._watch = Watch(settings, clock, self._on_snapshot, self._latest)
        hooks = Hooks(on_batch=self._intake.on_batch, on_start=self._metrics.restarted)
        self._probing = Probing(settings, hooks, clock)
        self._reloads = Reloads(reread or _nothing_to_read, self._change, clock)
        chooser, collectors = Chooser(settings.metrics), _collectors(settings)
        self._exposition = Exposition(self._state, chooser, self._live(), clock, collectors, **self._steady())
        self._refresher = Refresher(self._exposition.refresh, clock, self._exposition.tick)
        self._targets = TargetPage(settings.modules, settings.metrics, clock)
        parts = Parts(
            state=self._state,
            exposition=self._exposition,
            status=self._probing.status,
            probe_page=self._probe_page,
            reload=self.reload,
            clock=clock,
            thresholds=lambda: self._settings.thresholds,
            usual=self._past.of,
        )
        web = WebConfig.load(settings.web_config) if settings.web_config else None
        self.routes = make_routes(parts)
        self._server = Server(parse_listen(settings.listen), self.routes, web)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._server.url

    def start(self) -> None:
        """Start every part."""
        if self._landing is not None:
            self._landing.writer.start()
        for part in (self._past, self._refresher, self._watch, self._probing, self._server):
            part.start()
        log.info("serving %s", self.url)

    def stop(self) -> None:
        """Stop what brings data, side by side; then write what waits to be written: 5 s at most, a second as a rule."""
        until = self._clock.now().mono + _STOP_SECONDS
        self._reloads.close(_STOP_SECONDS / 4)
        parts = (self._watch, self._probing, self._server, self._refresher, self._past)
        threads = [threading.Thread(target=part.stop, daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, until - self._clock.now().mono))
        if self._landing is not None:
            self._landing.writer.stop(max(1.0, until - self._clock.now().mono))

    def ready(self) -> bool:
        """Whether every cluster has answered, well or not."""
        return is_ready(self._state)

    def sound(self) -> bool:
        """Whether every poller hands out snapshots, of a broker that is away, too: what a watchdog asks."""
        now, longest = self._clock.now(), _STILL_SECONDS + 10 * self._settings.poll.interval
        known = [state.snapshot for state in self._state.clusters().values()]
        return all(snapshot is None or now.since(snapshot.taken) < longest for snapshot in known)

    def reload(self) -> Reloaded:
        """Read the configuration again and go by it; where it is wrong, the settings before it stay."""
        try:
            return self._reloads.reload()
        finally:
            self._exposition.forget()

    def _change(self, settings: ExporterSettings) -> str:
        """Go by other settings; what they leave as it was goes on undisturbed. Returns what was done.

        Raises:
            ConfigError: a file of them cannot be read; nothing has changed then.
        """
        change, document = self._watch.plan(settings), targets_of(settings)
        before, self._settings = self._settings, settings
        # In this order: nothing of an old broker may reach the state of a new one.
        self._watch.end(change)
        self._state.watch(settings.clusters, change.anew)
        self._intake.apply(settings)
        self._past.apply(settings.history, settings.clusters)
        self._watch.begin(change)
        probes_anew = self._probing.change(settings, document)
        for name in amqp_of(before).keys() - amqp_of(settings).keys():
            self._metrics.forget(name)
        if (settings.modules, settings.metrics) != (before.modules, before.metrics):
            self._targets = TargetPage(settings.modules, settings.metrics, self._clock)
        self._exposition.apply(settings.metrics, _collectors(settings))
        later = [key for key in _FIXED if attrgetter(key)(settings) != attrgetter(key)(self._started)]
        told = [str(change), "probes started anew" if probes_anew else "probes as before"]
        if later:
            told.append(f"not changed while running, restart for it: {', '.join(later)}")
        return "; ".join(told)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        self._intake.on_snapshot(snapshot)
        self._refresher.wake()

    def _probe_page(self, request: Request) -> Answer:
        """One path, two kinds of questions: a probe of a cluster, and a reading of a broker by a module."""
        if "module" in request.query and "probe" in request.query:
            return Answer(b"probe= and module= exclude each other; give one\n", status=HTTPStatus.BAD_REQUEST)
        if "module" in request.query:
            return self._targets.answer(request)
        return ProbePage(tuple(self._settings.clusters), self._probing.one_shots).answer(request)

    def _latest(self, cluster: str) -> Snapshot | None:
        known = self._state.clusters().get(cluster)
        return known.snapshot if known else None

    def _steady(self) -> dict[str, dict[str, Source]]:
        """What polling is like: its counts change with the page, its ages with every moment; both of what it shows."""
        shown: list[dict[str, ClusterState]] = [{}]  # swapped whole: scrapes read it meanwhile

        def counts() -> list[Metric]:
            states = self._state.clusters()
            shown[0] = {name: state.without_past() for name, state in states.items()}
            return polls.counts(states, self._polled())

        return {
            "rounds": {"polls": counts},
            "moments": {"ages": lambda: polls.ages(shown[0], self._polled(), self._clock.now())},
        }

    def _polled(self) -> dict[str, PollerStats]:
        return {name: poller.stats for name, poller in self._watch.pollers.items()}

    def _live(self) -> dict[str, Source]:
        state, clock = self._state, self._clock
        return {
            "verdicts": lambda: verdicts.collect(state.clusters(), self._settings.metrics.limits),
            "outcomes": lambda: outcomes.collect(state.clusters(), clock.now()),
            "confirming": lambda: confirming.collect(state.clusters(), clock.now()),
            "probes": self._metrics.registry.collect,
            "process": lambda: process.collect(self._probing.status()),
            "reloads": lambda: reloads.collect(self._reloads.status),
            "landing": lambda: landing.collect(self._landing.writer.counts() if self._landing else None),
            "history": lambda: history.collect(self._past.counts(), clock.now()),
        }


def _lander(settings: ExporterSettings, clock: Clock) -> "Lander | None":
    if settings.landing.directory is None:
        return None
    # Loaded only where it is used: it brings Arrow with it.
    from exporter.landing.sink import Lander  # noqa: PLC0415  see above

    return Lander(settings.landing.directory, settings.landing, settings.thresholds.own_prefixes, clock)


def _collectors(settings: ExporterSettings) -> Mapping[str, Collector]:
    return collectors_for(settings.metrics.names, with_detailed=settings.metrics.detailed)


def _nothing_to_read() -> ExporterSettings:
    raise ConfigError("there is no file to read again; start with --config FILE")

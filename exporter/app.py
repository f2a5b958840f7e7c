"""The exporter put together: the only place that knows all its parts."""

import logging
import signal
import threading
from queue import SimpleQueue

from ackscope.clock import Clock
from exporter.execute import Source
from exporter.exposition import Exposition
from exporter.http import Server
from exporter.intake import Intake
from exporter.landing.writer import LandingWriter
from exporter.live import confirming, landing, outcomes, polls, process, verdicts
from exporter.one_shot import OneShots
from exporter.polling.poller import Poller
from exporter.probe_metrics import ProbeMetrics
from exporter.probe_page import ProbePage
from exporter.probe_process import Hooks, ProbeProcess
from exporter.routes import make_routes
from exporter.settings import ExporterSettings, parse_listen
from exporter.state import State
from probes.settings import AmqpSettings
from probes.wire import Target, encode_targets

log = logging.getLogger(__name__)

_STOP_SECONDS = 4.0


class App:
    """One exporter.

    Args:
        settings: already checked.
        clock: of all its parts.

    Raises:
        UsageError: it cannot listen where it should.
        ConfigError: a file of the settings went away since they were checked.
    """

    def __init__(self, settings: ExporterSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._state = State(settings.clusters)
        self._metrics = ProbeMetrics()
        directory = settings.landing.directory
        self._landing = LandingWriter(directory, settings.landing, clock) if directory else None
        self._intake = Intake(settings, self._state, self._metrics, self._landing, clock)
        self._pollers = {
            name: Poller(name, cluster.management, settings.poll.interval, clock, self._intake.on_snapshot)
            for name, cluster in settings.clusters.items()
        }
        self._probes = self._make_probes()
        exposition = Exposition(self._state, settings.metrics.limits, self._live(), clock)
        self._one_shots = OneShots(self._amqp(), settings.probes.prefix, clock)
        page = ProbePage(tuple(settings.clusters), self._one_shots)
        routes = make_routes(self._state, exposition, self._status, page, clock)
        self._server = Server(parse_listen(settings.listen), routes)

    @property
    def url(self) -> str:
        """Where it answers."""
        return self._server.url

    def start(self) -> None:
        """Start every part."""
        if self._landing is not None:
            self._landing.start()
        for part in self._sources():
            part.start()
        log.info("serving %s", self.url)

    def stop(self) -> None:
        """Stop what brings data, side by side; then write what waits to be written: 5 s at most, a second as a rule."""
        stops = [self._one_shots.stop, *(part.stop for part in self._sources())]
        threads = [threading.Thread(target=stop, daemon=True) for stop in stops]
        for thread in threads:
            thread.start()
        until = self._clock.now().mono + _STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - self._clock.now().mono))
        if self._landing is not None:
            self._landing.stop(max(1.0, until - self._clock.now().mono))

    def run(self) -> int:
        """Work until SIGTERM or SIGINT; the result is the exit code."""
        # A SimpleQueue and not an Event: a signal handler may put into it at any moment without a deadlock.
        signals: SimpleQueue[int] = SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _frame: signals.put(got))
        self.start()
        log.info("stopping: %s", signal.Signals(signals.get()).name)
        self.stop()
        return 0

    def _sources(self) -> list[Poller | ProbeProcess | Server]:
        return [*self._pollers.values(), *([self._probes] if self._probes else []), self._server]

    def _make_probes(self) -> ProbeProcess | None:
        targets = [Target(name, amqp, self._settings.probes) for name, amqp in self._amqp().items()]
        if not targets or not self._settings.probes.enabled:
            return None
        hooks = Hooks(on_batch=self._intake.on_batch, on_start=self._metrics.restarted)
        return ProbeProcess(encode_targets(targets), hooks, self._clock)

    def _amqp(self) -> dict[str, AmqpSettings]:
        clusters = self._settings.clusters.items()
        return {name: cluster.amqp for name, cluster in clusters if cluster.amqp is not None}

    def _status(self) -> process.ProcessStatus | None:
        return self._probes.status() if self._probes else None

    def _live(self) -> dict[str, Source]:
        state, clock, limits = self._state, self._clock, self._settings.metrics.limits
        return {
            "polls": lambda: polls.collect(
                state.clusters(), {name: poller.stats for name, poller in self._pollers.items()}, clock.now()
            ),
            "verdicts": lambda: verdicts.collect(state.clusters(), limits),
            "outcomes": lambda: outcomes.collect(state.clusters(), clock.now()),
            "confirming": lambda: confirming.collect(state.clusters(), clock.now()),
            "probes": self._metrics.registry.collect,
            "process": lambda: process.collect(self._status()),
            "landing": lambda: landing.collect(self._landing.counts() if self._landing else None),
        }

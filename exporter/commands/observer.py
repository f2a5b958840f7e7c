"""Observes a broker repeatedly, optionally with probes; shared by diagnose, its watch mode, and bundle."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr, ValidationError

from ackscope.address import parse_amqp, parse_management
from ackscope.clock import Clock, Instant, SystemClock
from ackscope.errors import UsageError
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from diagnosis.text import MANAGEMENT
from diagnosis.window import Window
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.prometheus.settings import PrometheusSettings, SourceChoice
from exporter.broker.queue_history import past_snapshots
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import raise_if_unreadable, read_once
from exporter.probes_host.nodes import assign_outcome_nodes, probe_nodes
from exporter.probes_host.process import ProbeSupervisor, SupervisorHooks
from exporter.runtime.snapshot_relay import fill_missing
from probes.ipc import ProbeTarget, RecordBatch, encode_targets
from probes.settings import AmqpSettings, ProbesSettings

_PROBES = ProbesSettings.model_validate(
    {
        "enabled": ("confirm", "rtt", "handshake"),
        "confirm": {"streams": ("transient", "classic", "quorum"), "rate": 10.0, "control_rate": 5.0},
        "rtt": {"interval": 0.5},
        # An exporter that watches the same broker cannot tell these connections from those of a client in a loop; one
        # every 4 s beside a queue without a consumer would be a finding.
        "handshake": {"interval": 6.0},
    }
)
"""Settings that suffice to break down confirm latency within seconds, at negligible load."""


NO_ADDRESSES = PrometheusSettings()


@dataclass(slots=True)
class BrokerObserver:
    """Observes one broker. `window` and `outcomes` grow with each observation.

    Attributes:
        cluster: host and port of its management API, or of its first Prometheus endpoint.
        settings: how to read it.
        clock: dates the snapshots.
        probed: whether probes run.
        window: snapshots so far.
        metrics: reads the Prometheus endpoints of its nodes.
    """

    cluster: str
    settings: ManagementSettings
    clock: Clock
    probed: bool
    window: Window
    metrics: MetricsReader
    _latest: dict[tuple[str, str, str], ProbeOutcome] = field(default_factory=dict)

    def look(self, seconds: float) -> Snapshot:
        """Take a snapshot.

        Args:
            seconds: time limit; a part that is not read in time has an error.

        Raises:
            BrokerError: nothing can be read, and no probe runs.
        """
        snapshot = read_once(self.cluster, self.settings, self.clock, seconds, metrics=self.metrics)
        if self.window.latest is not None:
            snapshot = fill_missing(self.window.latest, snapshot)
        if not self.probed:
            raise_if_unreadable(snapshot)
        is_first = self.window.latest is None and not self.metrics.alone
        past = past_snapshots(self.settings, snapshot, seconds) if is_first else ()
        for each in (*past, snapshot):
            self.window = self.window.add(each)
        return snapshot

    def wait(self, since: Instant, seconds: float) -> None:
        """Wait until `seconds` after `since`; return at once if that has passed."""
        time.sleep(max(0.0, seconds - self.clock.now().since(since)))

    @property
    def management(self) -> str:
        """URL of the management API, without credentials; a placeholder if there is none."""
        if self.metrics.alone:
            return MANAGEMENT
        return self.settings.address().url

    @property
    def outcomes(self) -> tuple[ProbeOutcome, ...]:
        """Probe summaries so far, with their nodes."""
        nodes = probe_nodes(self.window.latest, _PROBES.prefix)
        return tuple(assign_outcome_nodes([self._latest[key] for key in sorted(self._latest)], nodes))

    def take(self, batch: RecordBatch) -> None:
        """Process the records of one output line of the probe process."""
        found = {(outcome.probe, outcome.stream, outcome.queue): outcome for outcome in batch.outcomes}
        self._latest = {**self._latest, **found}


def _endpoints(urls: Sequence[str]) -> PrometheusSettings:
    try:
        return PrometheusSettings(urls=tuple(urls))
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--prometheus: {why}") from None


@contextmanager
def observe(management: str | None, amqp: str | None, prometheus: Sequence[str] = ()) -> Iterator[BrokerObserver]:
    """Observe a broker, with probes if an AMQP address is given; they clean up at the end.

    Args:
        management: address of its management API; None to read only the Prometheus endpoints.
        amqp: where probes publish and consume.
        prometheus: addresses of the Prometheus endpoints of its nodes, which are read if the broker keeps no statistics
            or AMQP 1.0 clients are connected; by default port 15692 of each node, which is read in the first case only.
            Either is asked which channel publishes to which exchange if messages are lost without a route.

    Raises:
        UsageError: invalid address.
    """
    if management is not None:
        parse_management(management)
    for url in prometheus:
        parse_management(url, "--prometheus")
    if amqp is not None:
        parse_amqp(amqp)
    probed = None if amqp is None else AmqpSettings(url=SecretStr(amqp))
    endpoints = _endpoints(prometheus)
    settings = endpoints.at(endpoints.urls[0]) if management is None else ManagementSettings(url=management)
    with observe_by_settings(settings, probed, endpoints, alone=management is None) as look:
        yield look


@contextmanager
def observe_by_settings(
    management: ManagementSettings,
    amqp: AmqpSettings | None,
    prometheus: PrometheusSettings = NO_ADDRESSES,
    *,
    alone: bool = False,
) -> Iterator[BrokerObserver]:
    """Observe a broker as `observe` does, by settings that are valid; `alone` if there is no management API."""
    address = management.address()
    cluster = address.where
    clock = SystemClock()
    metrics = MetricsReader(prometheus, SourceChoice.AUTO, None if alone else address.host, clock, "--prometheus")
    look = BrokerObserver(cluster, management, clock, amqp is not None, Window.empty(cluster), metrics)
    if amqp is None:
        yield look
        return
    document = encode_targets([ProbeTarget(cluster, amqp.servers(), _PROBES)])
    process = ProbeSupervisor(document, SupervisorHooks(on_batch=look.take, on_start=lambda: None), clock)
    process.start()
    try:
        yield look
    finally:
        process.stop()

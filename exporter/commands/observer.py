"""Observes a broker repeatedly, optionally with probes; shared by diagnose, its watch mode, and bundle."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr

from ackscope.address import parse_amqp, parse_management
from ackscope.clock import Clock, Instant, SystemClock
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Snapshot
from diagnosis.window import Window
from exporter.broker.settings import ManagementSettings
from exporter.broker.snapshot_builder import raise_if_unreadable, read_once
from exporter.probes_host.nodes import assign_outcome_nodes, probe_nodes
from exporter.probes_host.process import ProbeSupervisor, SupervisorHooks
from exporter.runtime.snapshot_relay import fill_missing
from probes.ipc import ProbeTarget, RecordBatch, encode_targets
from probes.settings import AmqpSettings, ConfirmSettings, HandshakeSettings, ProbesSettings, RttSettings

_PROBES = ProbesSettings(
    enabled=("confirm", "rtt", "handshake"),
    confirm=ConfirmSettings(streams=("transient", "classic", "quorum"), rate=10.0, control_rate=5.0),
    rtt=RttSettings(interval=0.5),
    handshake=HandshakeSettings(interval=3.0),
)
"""Settings that suffice to break down confirm latency within seconds, at negligible load."""


@dataclass(slots=True)
class BrokerObserver:
    """Observes one broker. `window` and `outcomes` grow with each observation.

    Attributes:
        cluster: host and port of its management API.
        settings: how to read it.
        clock: dates the snapshots.
        probed: whether probes run.
        window: snapshots so far.
    """

    cluster: str
    settings: ManagementSettings
    clock: Clock
    probed: bool
    window: Window
    _latest: dict[tuple[str, str, str], ProbeOutcome] = field(default_factory=dict)

    def look(self, seconds: float) -> Snapshot:
        """Take a snapshot.

        Args:
            seconds: time limit; a part that is not read in time has an error.

        Raises:
            BrokerError: nothing can be read, and no probe runs.
        """
        snapshot = read_once(self.cluster, self.settings, self.clock, seconds)
        if self.window.latest is not None:
            snapshot = fill_missing(self.window.latest, snapshot)
        if not self.probed:
            raise_if_unreadable(snapshot)
        self.window = self.window.add(snapshot)
        return snapshot

    def wait(self, since: Instant, seconds: float) -> None:
        """Wait until `seconds` after `since`; return at once if that has passed."""
        time.sleep(max(0.0, seconds - self.clock.now().since(since)))

    @property
    def management(self) -> str:
        """URL of the management API, without credentials."""
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


@contextmanager
def observe(management: str, amqp: str | None) -> Iterator[BrokerObserver]:
    """Observe a broker, with probes if an AMQP address is given; they clean up at the end.

    Raises:
        UsageError: invalid address.
    """
    parse_management(management)
    if amqp is not None:
        parse_amqp(amqp)
    probed = None if amqp is None else AmqpSettings(url=SecretStr(amqp))
    with observe_by_settings(ManagementSettings(url=management), probed) as look:
        yield look


@contextmanager
def observe_by_settings(management: ManagementSettings, amqp: AmqpSettings | None) -> Iterator[BrokerObserver]:
    """Observe a broker as `observe` does, by settings that are valid."""
    cluster = management.address().where
    clock = SystemClock()
    look = BrokerObserver(cluster, management, clock, amqp is not None, Window.empty(cluster))
    if amqp is None:
        yield look
        return
    document = encode_targets([ProbeTarget(cluster, amqp, _PROBES)])
    process = ProbeSupervisor(document, SupervisorHooks(on_batch=look.take, on_start=lambda: None), clock)
    process.start()
    try:
        yield look
    finally:
        process.stop()

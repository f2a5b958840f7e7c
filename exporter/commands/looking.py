"""Looking at a broker again and again, with probes beside: what diagnose, its watch, and bundle have in common."""

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
from exporter.carry import carried
from exporter.placement import place_outcomes, probe_nodes
from exporter.probe_process import Hooks, ProbeProcess
from probes.settings import AmqpSettings, ConfirmSettings, HandshakeSettings, ProbesSettings, RttSettings
from probes.wire import Batch, Target, encode_targets

_PROBES = ProbesSettings(
    enabled=("confirm", "rtt", "handshake"),
    confirm=ConfirmSettings(streams=("transient", "classic", "quorum"), rate=10.0, control_rate=5.0),
    rtt=RttSettings(interval=0.5),
    handshake=HandshakeSettings(interval=3.0),
)
"""Enough to tell the layers of a confirm apart within seconds, and no load to speak of."""


@dataclass(slots=True)
class Looking:
    """One broker being looked at; `window` and `outcomes` fill as it goes.

    Attributes:
        cluster: what it is called: host and port of its management API.
        probed: probes run beside.
    """

    cluster: str
    settings: ManagementSettings
    clock: Clock
    probed: bool
    window: Window
    _latest: dict[tuple[str, str, str], ProbeOutcome] = field(default_factory=dict)

    def look(self, seconds: float) -> Snapshot:
        """Read everything once more.

        Args:
            seconds: the longest this takes; what was not read by then is a part with its error.

        Raises:
            BrokerError: nothing can be read, and no probe runs that could tell more.
        """
        snapshot = read_once(self.cluster, self.settings, self.clock, seconds)
        if self.window.latest is not None:
            snapshot = carried(self.window.latest, snapshot)
        if not self.probed:
            raise_if_unreadable(snapshot)
        self.window = self.window.add(snapshot)
        return snapshot

    def wait(self, since: Instant, seconds: float) -> None:
        """Return so many seconds after a moment, or at once where they are over."""
        time.sleep(max(0.0, seconds - self.clock.now().since(since)))

    @property
    def outcomes(self) -> tuple[ProbeOutcome, ...]:
        """What the probes lived through up to now, with their nodes."""
        nodes = probe_nodes(self.window.latest, _PROBES.prefix)
        return tuple(place_outcomes([self._latest[key] for key in sorted(self._latest)], nodes))

    def take(self, batch: Batch) -> None:
        """Take in what one line of the probe process held."""
        found = {(outcome.probe, outcome.stream, outcome.queue): outcome for outcome in batch.outcomes}
        self._latest = {**self._latest, **found}


@contextmanager
def looking(management: str, amqp: str | None) -> Iterator[Looking]:
    """Look at a broker, with probes beside where an AMQP address is given; they are swept at the end.

    Raises:
        UsageError: an address makes no sense.
    """
    cluster = parse_management(management).where
    if amqp is not None:
        parse_amqp(amqp)
    clock = SystemClock()
    settings = ManagementSettings(url=management)
    look = Looking(cluster, settings, clock, amqp is not None, Window.empty(cluster))
    if amqp is None:
        yield look
        return
    document = encode_targets([Target(cluster, AmqpSettings(url=SecretStr(amqp)), _PROBES)])
    process = ProbeProcess(document, Hooks(on_batch=look.take, on_start=lambda: None), clock)
    process.start()
    try:
        yield look
    finally:
        process.stop()

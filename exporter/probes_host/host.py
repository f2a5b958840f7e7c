"""The side that acts on brokers as a client: the probe process and the probes that run on demand, over reloads."""

import threading

from ackscope.clock import Clock
from exporter.exposition.live.process import ProbeProcessStatus
from exporter.probes_host.ondemand import OnDemandProbes
from exporter.probes_host.process import ProbeSupervisor, SupervisorHooks
from exporter.settings import ExporterSettings
from probes.settings import AmqpSettings
from probes.wire import Target, encode_targets


class ProbeHost:
    """Holds the probe process, where there is one, and what runs probes on demand.

    Args:
        settings: the first ones.
        hooks: take in what the probes say.
        clock: of all its parts.

    Raises:
        ConfigError: a file of the settings cannot be read.
    """

    def __init__(self, settings: ExporterSettings, hooks: SupervisorHooks, clock: Clock) -> None:
        self._hooks, self._clock = hooks, clock
        self._document = targets_document(settings)
        self._process = self._make(self._document)
        self._amqp, self._prefix = amqp_targets(settings), settings.probes.prefix
        self.ondemand = OnDemandProbes(self._amqp, self._prefix, clock)

    def status(self) -> ProbeProcessStatus | None:
        """How the probe process does; None where there is none."""
        process = self._process
        return process.status() if process else None

    def start(self) -> None:
        """Begin to probe."""
        if self._process is not None:
            self._process.start()

    def stop(self) -> None:
        """End all that runs, side by side."""
        ends = [self.ondemand.stop, *([self._process.stop] if self._process else [])]
        threads = [threading.Thread(target=end, daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def change(self, settings: ExporterSettings, document: bytes | None) -> bool:
        """Go by these settings; says whether the probe process was started anew: only where its targets changed.

        Args:
            settings: checked.
            document: what `targets_of` made of them.
        """
        amqp, prefix = amqp_targets(settings), settings.probes.prefix
        if (amqp, prefix) != (self._amqp, self._prefix):
            before, self.ondemand = self.ondemand, OnDemandProbes(amqp, prefix, self._clock)
            self._amqp, self._prefix = amqp, prefix
            threading.Thread(target=before.stop, name="one-shot-ends", daemon=True).start()
        if document == self._document:
            return False
        old = self._process
        # Waited for: two probe processes side by side would be told as one, and count twice.
        if old is not None:
            old.stop()
        self._document, self._process = document, self._make(document)
        self.start()
        return True

    def _make(self, document: bytes | None) -> ProbeSupervisor | None:
        return None if document is None else ProbeSupervisor(document, self._hooks, self._clock)


def amqp_targets(settings: ExporterSettings) -> dict[str, AmqpSettings]:
    """Cluster name -> where to connect, of those that can be probed."""
    return {name: cluster.amqp for name, cluster in settings.clusters.items() if cluster.amqp is not None}


def targets_document(settings: ExporterSettings) -> bytes | None:
    """The line that tells the probe process what to probe, credentials and all; None where nothing is to be probed.

    Raises:
        ConfigError: a password file cannot be read.
    """
    targets = [Target(name, amqp, settings.probes) for name, amqp in amqp_targets(settings).items()]
    return encode_targets(targets) if targets and settings.probes.enabled else None

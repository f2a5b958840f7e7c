"""Runs the long-running probe process and on-demand probes, and adapts both to reloads of the configuration."""

import threading

from ackscope.clock import Clock
from exporter.exposition.live.process import SupervisedProcess
from exporter.probes_host.ondemand import OnDemandProbes
from exporter.probes_host.process import ProbeSupervisor, SupervisorHooks
from exporter.settings import ExporterSettings
from probes.ipc import ProbeTarget, encode_targets
from probes.settings import AmqpSettings


class ProbeHost:
    """Holds the probe process, if any, and the on-demand probes.

    Args:
        settings: the initial settings.
        hooks: receive what the probes report.
        clock: shared by all parts.

    Raises:
        ConfigError: a file named in the settings cannot be read.
    """

    def __init__(self, settings: ExporterSettings, hooks: SupervisorHooks, clock: Clock) -> None:
        self._hooks, self._clock = hooks, clock
        self._document = targets_document(settings)
        self._process = self._make(self._document)
        self._amqp, self._prefix = amqp_targets(settings), settings.probes.prefix
        self.ondemand = OnDemandProbes(self._amqp, self._prefix, clock)

    def status(self) -> SupervisedProcess | None:
        """Status of the probe process; None if there is none."""
        process = self._process
        return process.status() if process else None

    def start(self) -> None:
        """Start probing."""
        if self._process is not None:
            self._process.start()

    def stop(self) -> None:
        """Stop everything in parallel."""
        ends = [self.ondemand.stop, *([self._process.stop] if self._process else [])]
        threads = [threading.Thread(target=end, daemon=True) for end in ends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def change(self, settings: ExporterSettings, document: bytes | None) -> bool:
        """Apply new settings. Restarts the probe process only if its targets changed; returns whether it did.

        Args:
            settings: validated settings.
            document: result of `targets_document` for them.
        """
        amqp, prefix = amqp_targets(settings), settings.probes.prefix
        if (amqp, prefix) != (self._amqp, self._prefix):
            before, self.ondemand = self.ondemand, OnDemandProbes(amqp, prefix, self._clock)
            self._amqp, self._prefix = amqp, prefix
            threading.Thread(target=before.stop, name="one-shot-ends", daemon=True).start()
        if document == self._document:
            return False
        old = self._process
        # Wait until it has stopped: two probe processes at once would count twice under the same labels.
        if old is not None:
            old.stop()
        self._document, self._process = document, self._make(document)
        self.start()
        return True

    def _make(self, document: bytes | None) -> ProbeSupervisor | None:
        return None if document is None else ProbeSupervisor(document, self._hooks, self._clock)


def amqp_targets(settings: ExporterSettings) -> dict[str, AmqpSettings]:
    """Cluster name -> AMQP settings, for clusters that can be probed."""
    return {name: cluster.amqp for name, cluster in settings.clusters.items() if cluster.amqp is not None}


def targets_document(settings: ExporterSettings) -> bytes | None:
    """Return the line of targets for the probe process, with credentials; None if there is nothing to probe.

    Raises:
        ConfigError: a password file cannot be read.
    """
    targets = [ProbeTarget(name, amqp.servers(), settings.probes) for name, amqp in amqp_targets(settings).items()]
    return encode_targets(targets) if targets and settings.probes.enabled else None

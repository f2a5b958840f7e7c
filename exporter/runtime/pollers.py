"""Holds one poller per cluster, and plans how to reconcile the pollers with new settings."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ackscope.clock import Clock
from ackscope.snapshot import Snapshot
from exporter.polling.poller import Poller
from exporter.runtime.fingerprint import Fingerprint, fingerprint
from exporter.runtime.snapshot_relay import SnapshotRelay
from exporter.settings import ClusterSettings, ExporterSettings


@dataclass(frozen=True, slots=True)
class PolledCluster:
    """A cluster and its poller.

    Attributes:
        poller: reads the broker.
        relay: passes its snapshots on.
        fingerprint: settings that the poller was made from.
        broker: address that is polled. A different address means a different broker, whose state is unknown.
    """

    poller: Poller
    relay: SnapshotRelay
    fingerprint: Fingerprint
    broker: str


@dataclass(frozen=True, slots=True)
class ReconcilePlan:
    """Planned changes from the current pollers to those of new settings. Nothing has been changed yet.

    Attributes:
        clusters: all clusters of the new settings.
        created: names with a new poller.
        reset: names whose state is discarded: new clusters, and those whose broker address changed.
        removed: names that are no longer configured.
    """

    clusters: dict[str, PolledCluster]
    created: tuple[str, ...]
    reset: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        """A one-line summary for the log."""
        changed = [name for name in self.created if name not in self.reset]
        groups = (("new or moved", self.reset), ("changed", changed), ("removed", self.removed))
        parts = [f"{what}: {', '.join(names)}" for what, names in groups if names]
        return f"clusters {'; '.join(parts)}" if parts else "clusters unchanged"


class PollerRegistry:
    """Holds one poller per cluster.

    Args:
        settings: the initial settings.
        clock: shared by all pollers.
        sink: receives every snapshot, called from the pollers' threads.
        latest: cluster name -> its last snapshot; None before the first.
        past_sink: receives what a broker kept of the time before its first snapshot.

    Raises:
        ConfigError: a file named in the settings cannot be read.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        clock: Clock,
        sink: Callable[[Snapshot], None],
        latest: Callable[[str], Snapshot | None],
        past_sink: Callable[[tuple[Snapshot, ...]], None],
    ) -> None:
        self._clock, self._sink, self._latest, self._past_sink = clock, sink, latest, past_sink
        self._polled: dict[str, PolledCluster] = {}
        self._polled = self.plan(settings).clusters

    @property
    def pollers(self) -> Mapping[str, Poller]:
        """Return the poller of each cluster by name."""
        return {name: watched.poller for name, watched in self._polled.items()}

    def start(self) -> None:
        """Start polling."""
        for poller in self.pollers.values():
            poller.start()

    def stop(self) -> None:
        """Stop all pollers in parallel."""
        _stop(list(self.pollers.values()))

    def plan(self, settings: ExporterSettings) -> ReconcilePlan:
        """Create the pollers that the new settings need, without starting them.

        Raises:
            ConfigError: a file named in the settings cannot be read.
        """
        clusters: dict[str, PolledCluster] = {}
        created, reset = [], []
        for name, cluster in settings.clusters.items():
            before = self._polled.get(name)
            mark = fingerprint(cluster.model_copy(update={"amqp": None}), settings.poll)
            if before is not None and before.fingerprint == mark:
                clusters[name] = before
                continue
            broker = _broker(cluster)
            same = before is not None and before.broker == broker
            created.append(name)
            if not same:
                reset.append(name)
            relay = SnapshotRelay(self._sink, self._latest(name) if same else None)
            metrics = cluster.metrics(self._clock, f"clusters.{name}.prometheus")
            # Of a broker that was polled before, more is known than it keeps.
            past = None if same or (metrics is not None and metrics.alone) else self._past_sink
            poller = Poller(name, cluster.access, settings.poll, self._clock, relay, metrics, past)
            clusters[name] = PolledCluster(poller, relay, mark, broker)
        removed = tuple(name for name in self._polled if name not in clusters)
        return ReconcilePlan(clusters, tuple(created), tuple(reset), removed)

    def stop_replaced(self, change: ReconcilePlan) -> None:
        """First half of the change: stop replaced and removed pollers, which pass on no more snapshots."""
        replaced = [it for name, it in self._polled.items() if change.clusters.get(name) is not it]
        for watched in replaced:
            watched.relay.close()
        # Runs in its own thread: a hanging request would block the reload.
        threading.Thread(target=_stop, args=([it.poller for it in replaced],), name="watch-ends", daemon=True).start()

    def start_created(self, change: ReconcilePlan) -> None:
        """Second half of the change: start the new pollers."""
        self._polled = change.clusters
        for name in change.created:
            change.clusters[name].poller.start()


def _broker(cluster: ClusterSettings) -> str:
    address = cluster.access.address()
    return f"{address.where}{address.path}"


def _stop(pollers: list[Poller]) -> None:
    threads = [threading.Thread(target=poller.stop, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

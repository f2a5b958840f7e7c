"""The clusters under watch, a poller each: who stays, who comes and who goes when the settings change."""

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
    """One cluster under watch.

    Attributes:
        broker: the address that is asked; another one is another broker, of which nothing is known.
    """

    poller: Poller
    relay: SnapshotRelay
    mark: Fingerprint
    broker: str


@dataclass(frozen=True, slots=True)
class ReconcilePlan:
    """The way from some settings to others; nothing of it has happened yet.

    Attributes:
        after: every cluster that is watched then.
        fresh: names of those with a new poller.
        anew: names of those of which nothing is known: they are new, or another broker.
        gone: names of those that end.
    """

    clusters: dict[str, PolledCluster]
    created: tuple[str, ...]
    reset: tuple[str, ...]
    removed: tuple[str, ...]

    def __str__(self) -> str:
        """It in words, for the log."""
        changed = [name for name in self.created if name not in self.reset]
        groups = (("new or moved", self.reset), ("changed", changed), ("gone", self.removed))
        parts = [f"{what}: {', '.join(names)}" for what, names in groups if names]
        return f"clusters {'; '.join(parts)}" if parts else "clusters as before"


class PollerRegistry:
    """Holds the pollers.

    Args:
        settings: of the first clusters.
        clock: of all pollers.
        hand_on: takes every snapshot; called from the pollers' own threads.
        latest: the last snapshot of a cluster by its name; None before the first.

    Raises:
        ConfigError: a file of the settings cannot be read.
    """

    def __init__(
        self,
        settings: ExporterSettings,
        clock: Clock,
        sink: Callable[[Snapshot], None],
        latest: Callable[[str], Snapshot | None],
    ) -> None:
        self._clock, self._sink, self._latest = clock, sink, latest
        self._watched: dict[str, PolledCluster] = {}
        self._watched = self.plan(settings).clusters

    @property
    def pollers(self) -> Mapping[str, Poller]:
        """By the name of the cluster."""
        return {name: watched.poller for name, watched in self._watched.items()}

    def start(self) -> None:
        """Begin to poll."""
        for poller in self.pollers.values():
            poller.start()

    def stop(self) -> None:
        """End all, side by side."""
        _stop(list(self.pollers.values()))

    def plan(self, settings: ExporterSettings) -> ReconcilePlan:
        """Make what these settings need, and start nothing.

        Raises:
            ConfigError: a file of the settings cannot be read.
        """
        clusters: dict[str, PolledCluster] = {}
        created, reset = [], []
        for name, cluster in settings.clusters.items():
            before = self._watched.get(name)
            mark = fingerprint(cluster.management, settings.poll)
            if before is not None and before.mark == mark:
                clusters[name] = before
                continue
            broker = _broker(cluster)
            same = before is not None and before.broker == broker
            created.append(name)
            if not same:
                reset.append(name)
            relay = SnapshotRelay(self._sink, self._latest(name) if same else None)
            poller = Poller(name, cluster.management, settings.poll, self._clock, relay)
            clusters[name] = PolledCluster(poller, relay, mark, broker)
        removed = tuple(name for name in self._watched if name not in clusters)
        return ReconcilePlan(clusters, tuple(created), tuple(reset), removed)

    def stop_replaced(self, change: ReconcilePlan) -> None:
        """The first half of the way: what is replaced or gone hands nothing on any more."""
        replaced = [it for name, it in self._watched.items() if change.clusters.get(name) is not it]
        for watched in replaced:
            watched.relay.close()
        # Not waited for: a request that hangs takes its time.
        threading.Thread(target=_stop, args=([it.poller for it in replaced],), name="watch-ends", daemon=True).start()

    def start_created(self, change: ReconcilePlan) -> None:
        """The second half: what is new starts."""
        self._watched = change.clusters
        for name in change.created:
            change.clusters[name].poller.start()


def _broker(cluster: ClusterSettings) -> str:
    address = cluster.management.address()
    return f"{address.where}{address.path}"


def _stop(pollers: list[Poller]) -> None:
    threads = [threading.Thread(target=poller.stop, daemon=True) for poller in pollers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
